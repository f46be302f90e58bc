// SPDX-License-Identifier: Apache-2.0
// What tests call of glibc's <malloc.h>, for Windows: see base/windows/README.md.
#pragma once

#include_next <malloc.h>

inline size_t malloc_usable_size(void* memory) {
  return _msize(memory);
}
