// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <fcntl.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once

#include_next <fcntl.h>

#include <sys/types.h>

// Descriptors are never inherited, and opening never waits.
#define O_CLOEXEC 0
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_NOATIME 0
#define O_NOFOLLOW 0x01000000
#define O_DIRECTORY 0x02000000  // cannot be opened: folders need no flushing
#define O_TMPFILE 0x04000000    // there are no files without a name

#define F_GETFD 1
#define F_GETFL 3
#define F_SETFL 4
#define F_DUPFD_CLOEXEC 5
#define AT_FDCWD (-100)
#define AT_SYMLINK_FOLLOW 1

#define POSIX_FADV_WILLNEED 3
#define POSIX_FADV_DONTNEED 4
#define SYNC_FILE_RANGE_WAIT_BEFORE 1
#define SYNC_FILE_RANGE_WRITE 2
#define SYNC_FILE_RANGE_WAIT_AFTER 4

namespace foretoken {

// Binary, and others may read, write, rename and delete the file meanwhile. Paths are UTF-8.
int open(const char* path, int flags, unsigned mode = 0);
int fcntl(int descriptor, int command, int value = 0);
// Both set the size of the file, for which the system reserves space.
int fallocate(int descriptor, int mode, off_t offset, off_t size);
int posix_fallocate(int descriptor, off_t offset, off_t size);
// Advice, which Windows does not take.
inline int posix_fadvise(int, off_t, off_t, int) {
  return 0;
}
inline int sync_file_range(int, off_t, off_t, unsigned) {
  return 0;
}

}  // namespace foretoken
