// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <io.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/windows/system_error.h"

// After windows.h:
#include <ntsecapi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>

namespace foretoken {
namespace {

HANDLE HandleOf(int descriptor) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
}

// Times of Windows count 100 ns since 1601.
struct timespec TimeOf(std::int64_t time) {
  constexpr std::int64_t kFrom1601To1970 = 116'444'736'000'000'000, kSecond = 10'000'000;
  const std::int64_t since = time - kFrom1601To1970;
  return {.tv_sec = since / kSecond, .tv_nsec = static_cast<long>(since % kSecond * 100)};
}

int StatusOfHandle(HANDLE handle, struct stat* status) {
  *status = {};
  switch (GetFileType(handle)) {
    case FILE_TYPE_CHAR:
      status->st_mode = S_IFCHR;
      return 0;
    case FILE_TYPE_PIPE:
      status->st_mode = S_IFIFO;
      return 0;
    case FILE_TYPE_DISK:
      break;
    default:
      return errno = EBADF, -1;
  }
  BY_HANDLE_FILE_INFORMATION file;
  FILE_BASIC_INFO times;
  if (!GetFileInformationByHandle(handle, &file) ||
      !GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times))
    return LastError();
  const bool folder = (file.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  const bool link = (file.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
  status->st_mode = link ? S_IFLNK : folder ? S_IFDIR | 0700u : S_IFREG | 0600u;
  status->st_dev = file.dwVolumeSerialNumber;
  status->st_ino = std::uint64_t{file.nFileIndexHigh} << 32 | file.nFileIndexLow;
  status->st_size =
      static_cast<std::int64_t>(std::uint64_t{file.nFileSizeHigh} << 32 | file.nFileSizeLow);
  status->st_nlink = file.nNumberOfLinks;
  status->st_atim = TimeOf(times.LastAccessTime.QuadPart);
  status->st_mtim = TimeOf(times.LastWriteTime.QuadPart);
  status->st_ctim = TimeOf(times.ChangeTime.QuadPart);
  return 0;
}

constexpr DWORD kAllShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

int StatusAt(const char* path, DWORD flags, struct stat* status) {
  const HANDLE handle =
      CreateFileW(WidePath(path).c_str(), FILE_READ_ATTRIBUTES, kAllShare, nullptr, OPEN_EXISTING,
                  FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return LastError();
  const int result = StatusOfHandle(handle, status);
  CloseHandle(handle);
  return result;
}

DWORD DispositionOf(int flags) {
  if ((flags & O_CREAT) == 0) return (flags & O_TRUNC) != 0 ? TRUNCATE_EXISTING : OPEN_EXISTING;
  if ((flags & O_EXCL) != 0) return CREATE_NEW;
  return (flags & O_TRUNC) != 0 ? CREATE_ALWAYS : OPEN_ALWAYS;
}

OVERLAPPED At(std::int64_t offset) {
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

// A byte that no file has: locks of Windows keep others from reading and writing what they cover.
OVERLAPPED LockedByte() {
  return At(std::int64_t{1} << 62);
}

// All pieces, by a call for one of them.
template <typename Call>
ssize_t ForPieces(const struct iovec* pieces, int n, off_t offset, Call&& call) {
  ssize_t all = 0;
  for (int i = 0; i < n; ++i) {
    const ssize_t moved = call(pieces[i].iov_base, pieces[i].iov_len, offset + all);
    if (moved < 0) return all > 0 ? all : moved;
    all += moved;
    if (static_cast<std::size_t>(moved) < pieces[i].iov_len) break;
  }
  return all;
}

// 0: no; POLLIN or POLLHUP otherwise.
short ReadyToRead(HANDLE handle) {
  if (GetFileType(handle) == FILE_TYPE_CHAR) return 0;
  if (GetFileType(handle) != FILE_TYPE_PIPE) return POLLIN;
  DWORD available = 0;
  if (!PeekNamedPipe(handle, nullptr, 0, nullptr, &available, nullptr)) return POLLHUP;
  return available > 0 ? POLLIN : 0;
}

}  // namespace

int open(const char* path, int flags, unsigned) try {
  if ((flags & (O_TMPFILE | O_DIRECTORY)) != 0) return errno = EINVAL, -1;
  const int access = flags & (O_RDONLY | O_WRONLY | O_RDWR);
  DWORD rights = access == O_WRONLY ? GENERIC_WRITE : GENERIC_READ;
  if (access == O_RDWR) rights |= GENERIC_WRITE;
  if (access != O_RDONLY) rights |= DELETE;  // it may be renamed while it is open
  DWORD attributes = FILE_ATTRIBUTE_NORMAL;
  if (access == O_RDONLY)
    attributes |= FILE_FLAG_BACKUP_SEMANTICS;  // a folder is told from what can be read
  if ((flags & O_NOFOLLOW) != 0) attributes |= FILE_FLAG_OPEN_REPARSE_POINT;
  const HANDLE handle = CreateFileW(WidePath(path).c_str(), rights, kAllShare, nullptr,
                                    DispositionOf(flags), attributes, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return LastError();
  struct stat status;
  if ((flags & O_NOFOLLOW) != 0 && StatusOfHandle(handle, &status) == 0 &&
      (status.st_mode & S_IFMT) == S_IFLNK) {
    CloseHandle(handle);
    return errno = ELOOP, -1;
  }
  const int descriptor =
      _open_osfhandle(reinterpret_cast<std::intptr_t>(handle), access | O_BINARY | O_NOINHERIT);
  if (descriptor < 0) CloseHandle(handle);
  return descriptor;
} catch (const std::exception&) {  // the path is no UTF-8, or there is no memory
  return errno = ENOENT, -1;
}

int fcntl(int descriptor, int command, int) {
  if (HandleOf(descriptor) == INVALID_HANDLE_VALUE) return errno = EBADF, -1;
  return command == F_DUPFD_CLOEXEC ? _dup(descriptor) : 0;
}

int fallocate(int descriptor, int, off_t offset, off_t size) {
  const int error = posix_fallocate(descriptor, offset, size);
  return error == 0 ? 0 : (errno = error, -1);
}

int posix_fallocate(int descriptor, off_t offset, off_t size) {
  FILE_END_OF_FILE_INFO end = {};
  end.EndOfFile.QuadPart = offset + size;
  if (SetFileInformationByHandle(HandleOf(descriptor), FileEndOfFileInfo, &end, sizeof end))
    return 0;
  return ErrnoOf(GetLastError());
}

int ftruncate(int descriptor, off_t size) {
  const int error = posix_fallocate(descriptor, 0, size);
  return error == 0 ? 0 : (errno = error, -1);
}

ssize_t read(int descriptor, void* bytes, std::size_t n) {
  return _read(descriptor, bytes, static_cast<unsigned>(std::min(n, kMostAtOnce)));
}

ssize_t write(int descriptor, const void* bytes, std::size_t n) {
  return _write(descriptor, bytes, static_cast<unsigned>(std::min(n, kMostAtOnce)));
}

ssize_t pread(int descriptor, void* bytes, std::size_t n, off_t offset) {
  OVERLAPPED place = At(offset);
  DWORD moved = 0;
  if (ReadFile(HandleOf(descriptor), bytes, static_cast<DWORD>(std::min(n, kMostAtOnce)), &moved,
               &place))
    return moved;
  return GetLastError() == ERROR_HANDLE_EOF ? 0 : LastError();
}

ssize_t pwrite(int descriptor, const void* bytes, std::size_t n, off_t offset) {
  OVERLAPPED place = At(offset);
  DWORD moved = 0;
  if (WriteFile(HandleOf(descriptor), bytes, static_cast<DWORD>(std::min(n, kMostAtOnce)), &moved,
                &place))
    return moved;
  return LastError();
}

ssize_t preadv(int descriptor, const struct iovec* pieces, int n, off_t offset) {
  return ForPieces(pieces, n, offset, [=](void* bytes, std::size_t size, off_t at) {
    return pread(descriptor, bytes, size, at);
  });
}

ssize_t pwritev(int descriptor, const struct iovec* pieces, int n, off_t offset) {
  return ForPieces(pieces, n, offset, [=](const void* bytes, std::size_t size, off_t at) {
    return pwrite(descriptor, bytes, size, at);
  });
}

int fsync(int descriptor) {
  return FlushFileBuffers(HandleOf(descriptor)) ? 0 : LastError();
}

int unlink(const char* path) {
  return DeleteFileW(WidePath(path).c_str()) ? 0 : LastError();
}

int linkat(int, const char*, int, const char*, int) {
  return errno = ENOSYS, -1;
}

int mkdir(const char* path, unsigned) {
  return CreateDirectoryW(WidePath(path).c_str(), nullptr) ? 0 : LastError();
}

int setenv(const char* name, const char* value, int) {
  return _putenv((std::string(name) + "=" + value).c_str());
}
int unsetenv(const char* name) {
  return setenv(name, "", 1);
}

int rename(const char* from, const char* to) {
  return MoveFileExW(WidePath(from).c_str(), WidePath(to).c_str(), MOVEFILE_REPLACE_EXISTING)
             ? 0
             : LastError();
}

char* mkdtemp(char* path) {
  constexpr std::size_t kLetters = 6;
  char* const letters = path + std::strlen(path) - kLetters;
  for (int attempt = 0; attempt < 100; ++attempt) {
    unsigned char random[kLetters];
    getrandom(random, kLetters, 0);
    for (std::size_t i = 0; i < kLetters; ++i) letters[i] = static_cast<char>('a' + random[i] % 26);
    if (mkdir(path, 0700) == 0) return path;
    if (errno != EEXIST) return nullptr;
  }
  return nullptr;
}

int stat(const char* path, struct stat* status) {
  return StatusAt(path, 0, status);
}
int lstat(const char* path, struct stat* status) {
  return StatusAt(path, FILE_FLAG_OPEN_REPARSE_POINT, status);
}
int fstat(int descriptor, struct stat* status) {
  const HANDLE handle = HandleOf(descriptor);
  return handle == INVALID_HANDLE_VALUE ? (errno = EBADF, -1) : StatusOfHandle(handle, status);
}

int flock(int descriptor, int operation) {
  const HANDLE handle = HandleOf(descriptor);
  OVERLAPPED place = LockedByte();
  if ((operation & LOCK_UN) != 0) return UnlockFileEx(handle, 0, 1, 0, &place) ? 0 : LastError();
  const DWORD exclusive = (operation & LOCK_EX) != 0 ? LOCKFILE_EXCLUSIVE_LOCK : 0;
  return LockFileEx(handle, LOCKFILE_FAIL_IMMEDIATELY | exclusive, 0, 1, 0, &place) ? 0
                                                                                    : LastError();
}

// A mapping holds its file, so the handle of the mapping is needed no more.
void* mmap(void*, std::size_t size, int protection, int flags, int descriptor, off_t) {
  const bool writes = (protection & PROT_WRITE) != 0 && flags == MAP_SHARED;
  const HANDLE mapping = CreateFileMappingW(HandleOf(descriptor), nullptr,
                                            writes ? PAGE_READWRITE : PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) return LastError(), MAP_FAILED;
  void* const address =
      MapViewOfFile(mapping, writes ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ, 0, 0, size);
  if (address == nullptr) LastError();
  CloseHandle(mapping);
  return address == nullptr ? MAP_FAILED : address;
}

int munmap(void* address, std::size_t) {
  return UnmapViewOfFile(address) ? 0 : LastError();
}

int mprotect(void* address, std::size_t size, int protection) {
  DWORD before = 0;
  const DWORD now = (protection & PROT_WRITE) != 0 ? PAGE_READWRITE : PAGE_READONLY;
  return VirtualProtect(address, size, now, &before) ? 0 : LastError();
}

int pipe2(int* ends, int) {
  return _pipe(ends, 4096, O_BINARY | O_NOINHERIT);
}

int poll(struct pollfd* entries, std::size_t n, int ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(ms);
  for (;;) {
    int ready = 0;
    for (std::size_t i = 0; i < n; ++i) {
      struct pollfd& entry = entries[i];
      entry.revents = 0;
      if (entry.fd >= 0)
        entry.revents = (entry.events & POLLOUT) != 0 ? POLLOUT : ReadyToRead(HandleOf(entry.fd));
      ready += entry.revents != 0 ? 1 : 0;
    }
    if (ready > 0 || (ms >= 0 && Clock::now() >= end)) return ready;
    Sleep(5);
  }
}

ssize_t getrandom(void* bytes, std::size_t n, unsigned) {
  return RtlGenRandom(bytes, static_cast<ULONG>(n)) ? static_cast<ssize_t>(n) : -1;
}

int gethostname(char* name, std::size_t size) {
  DWORD n = static_cast<DWORD>(size);
  return GetComputerNameExA(ComputerNameDnsHostname, name, &n) ? 0 : LastError();
}

}  // namespace foretoken
