// SPDX-License-Identifier: Apache-2.0
#include "foretoken.h"
#include "foretoken/catalogue.h"
#include "foretoken/options.h"

extern "C" {

const char* foretoken_version(void) {
  return foretoken::kVersion;
}

int32_t foretoken_abi_version(void) {
  return FORETOKEN_ABI_VERSION;
}

void foretoken_catch_bus_errors(int32_t on) {
  foretoken::CatchBusErrors(on != 0);
}

}  // extern "C"
