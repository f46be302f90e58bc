// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <sys/stat.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once
#pragma GCC \
    system_header  // a function of the name of a class hides its constructor, which is as POSIX has it

#include_next <sys/stat.h>

#include <sys/types.h>
#include <time.h>

#include <cstdint>

#undef stat
#undef fstat
#undef lstat
#ifndef S_IFSOCK
#define S_IFSOCK 0xC000
#endif
#ifndef S_IFLNK
#define S_IFLNK 0xA000
#endif
#ifndef S_ISSOCK
#define S_ISSOCK(mode) (((mode)&S_IFMT) == S_IFSOCK)
#endif
#ifndef S_IWGRP
#define S_IWGRP 0020
#endif
#ifndef S_IWOTH
#define S_IWOTH 0002
#endif

namespace foretoken {

using dev_t = std::uint64_t;
using ino_t = std::uint64_t;

// Who owns a file, and who else may write to it, is not asked: it counts as this user's alone.
struct stat {
  dev_t st_dev;
  ino_t st_ino;
  std::int64_t st_size;
  unsigned st_mode, st_uid, st_nlink;
  struct timespec st_atim, st_mtim, st_ctim;
};
int stat(const char* path, struct stat* status);
int lstat(const char* path, struct stat* status);  // a link itself
int fstat(int descriptor, struct stat* status);
int mkdir(const char* path, unsigned mode);

}  // namespace foretoken
