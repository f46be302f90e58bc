// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <sys/mman.h> that foretoken calls, for Windows: see base/windows/README.md. Files alone are mapped.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FAILED (reinterpret_cast<void*>(-1))
#define MADV_WILLNEED 3
#define MADV_DONTNEED 4
#define MADV_HUGEPAGE 14

namespace foretoken {

void* mmap(void* address, std::size_t size, int protection, int flags, int descriptor,
           off_t offset);
int munmap(void* address, std::size_t size);
int mprotect(void* address, std::size_t size, int protection);
// Advice, which Windows does not take.
inline int madvise(void*, std::size_t, int) {
  return 0;
}
// Windows does not tell which pages of a file are in memory.
inline int mincore(void*, std::size_t, unsigned char*) {
  return errno = ENOSYS, -1;
}

}  // namespace foretoken
