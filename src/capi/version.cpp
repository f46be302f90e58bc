// SPDX-License-Identifier: Apache-2.0
#include "foretoken.h"
#include "foretoken/catalogue.h"

extern "C" {

const char* foretoken_version(void) {
  return foretoken::kVersion;
}

int32_t foretoken_abi_version(void) {
  return FORETOKEN_ABI_VERSION;
}

}  // extern "C"
