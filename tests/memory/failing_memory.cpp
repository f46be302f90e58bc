// SPDX-License-Identifier: Apache-2.0
#include "memory/failing_memory.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORETOKEN_SANITIZED 1
#else
#define FORETOKEN_SANITIZED 0
#endif

namespace {

std::atomic<bool> counting = false, from_then_on = false;
std::atomic<std::int64_t> n_allocations = 0, fails_at = 0, bytes_held = 0;
thread_local bool inside_new = false;  // whose malloc is not counted again

bool Refused() noexcept {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const std::int64_t n = n_allocations.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::int64_t at = fails_at.load(std::memory_order_relaxed);
  return at > 0 && (n == at || (n > at && from_then_on.load(std::memory_order_relaxed)));
}

void* Held(void* p) noexcept {
  if (p != nullptr)
    bytes_held.fetch_add(static_cast<std::int64_t>(malloc_usable_size(p)),
                         std::memory_order_relaxed);
  return p;
}
void LetGo(void* p) noexcept {
  if (p != nullptr)
    bytes_held.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)),
                         std::memory_order_relaxed);
}

void* New(std::size_t size, std::size_t alignment) noexcept {
  if (Refused()) return nullptr;
  inside_new = true;
  const std::size_t asked = size == 0 ? 1 : size;
  void* const p = alignment == 0 ? std::malloc(asked)
                                 : std::aligned_alloc(
                                       alignment, (asked + alignment - 1) / alignment * alignment);
  inside_new = false;
  return FORETOKEN_SANITIZED ? Held(p) : p;
}
void* NewOrThrow(std::size_t size, std::size_t alignment) {
  if (void* const p = New(size, alignment)) return p;
  throw std::bad_alloc();
}
void Delete(void* p) noexcept {
  if (FORETOKEN_SANITIZED) LetGo(p);
  std::free(p);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t n) {
  return NewOrThrow(n, 0);
}
[[gnu::noinline]] void* operator new[](std::size_t n) {
  return NewOrThrow(n, 0);
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  return NewOrThrow(n, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new[](std::size_t n, std::align_val_t a) {
  return NewOrThrow(n, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return New(n, 0);
}
[[gnu::noinline]] void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return New(n, 0);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete[](void* p) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept {
  Delete(p);
}
[[gnu::noinline]] void operator delete[](void* p, const std::nothrow_t&) noexcept {
  Delete(p);
}

extern "C" {

// The linker sends foretoken's own calls here (--wrap).
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* address, std::size_t size);
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (Refused()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const p = __real_mmap(address, size, protection, flags, fd, offset);
  if (p != MAP_FAILED) bytes_held.fetch_add(static_cast<std::int64_t>((size + 4095) / 4096 * 4096));
  return p;
}
int __wrap_munmap(void* address, std::size_t size) {
  bytes_held.fetch_sub(static_cast<std::int64_t>((size + 4095) / 4096 * 4096));
  return __real_munmap(address, size);
}

#if !FORETOKEN_SANITIZED
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* p, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* p);

void* malloc(std::size_t size) noexcept {
  if (!inside_new && Refused()) return nullptr;
  return Held(__libc_malloc(size));
}
void* calloc(std::size_t n, std::size_t size) noexcept {
  if (!inside_new && Refused()) return nullptr;
  return Held(__libc_calloc(n, size));
}
void* realloc(void* p, std::size_t size) noexcept {
  if (Refused()) return nullptr;
  LetGo(p);
  return Held(__libc_realloc(p, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (!inside_new && Refused()) return nullptr;
  return Held(__libc_memalign(alignment, size));
}
void free(void* p) noexcept {
  LetGo(p);
  __libc_free(p);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_create"));
  return Refused() ? EAGAIN : real(thread, attributes, start, argument);
}
#endif

}  // extern "C"

namespace foretoken::tests {

void FailAllocation(std::int64_t at, bool all_later) {
  n_allocations = 0, fails_at = at, from_then_on = all_later;
}

void Resume() noexcept {
  counting = true;
}

std::int64_t StopFailing() noexcept {
  counting = false, fails_at = 0;
  return n_allocations;
}

std::int64_t BytesHeld() noexcept {
  return bytes_held;
}

}  // namespace foretoken::tests
