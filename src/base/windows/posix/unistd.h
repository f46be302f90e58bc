// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <unistd.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once

#include_next <unistd.h>

#include <sys/types.h>

#include <cstddef>

namespace foretoken {

// At most 1 GiB at once, as their counts have 32 bits.
ssize_t read(int descriptor, void* bytes, std::size_t n);
ssize_t write(int descriptor, const void* bytes, std::size_t n);
int isatty(int descriptor);  // 1 for a console, and 0 for NUL
ssize_t pread(int descriptor, void* bytes, std::size_t n, off_t offset);
ssize_t pwrite(int descriptor, const void* bytes, std::size_t n, off_t offset);
int fsync(int descriptor);
int ftruncate(int descriptor, off_t size);  // EACCES while the file is mapped
int unlink(const char* path);
int linkat(int, const char*, int, const char*, int);  // ENOSYS
int pipe2(int* ends, int flags);
int gethostname(char* name, std::size_t size);
// Who owns a file is not asked: see struct stat.
inline unsigned geteuid() {
  return 0;
}

}  // namespace foretoken
