// SPDX-License-Identifier: Apache-2.0
// base/windows/system_error.h: Windows' last error as a value of errno, and paths as Windows takes them.
#pragma once

#include <cerrno>
#include <filesystem>

#include <windows.h>

namespace foretoken {

inline int ErrnoOf(DWORD error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
    case ERROR_INVALID_DRIVE:
      return ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_BROKEN_PIPE:
    case ERROR_NO_DATA:
      return EPIPE;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return ENOMEM;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    case ERROR_LOCK_VIOLATION:
      return EWOULDBLOCK;
    case ERROR_FILE_TOO_LARGE:
      return EFBIG;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
      return EACCES;
    default:
      return EIO;
  }
}

// -1, with errno.
inline int LastError() {
  errno = ErrnoOf(GetLastError());
  return -1;
}

// std::filesystem takes a path of char for one in the code page of the C library, and not for UTF-8.
inline std::wstring WidePath(const char* path) {
  return std::filesystem::u8path(path).wstring();
}

}  // namespace foretoken
