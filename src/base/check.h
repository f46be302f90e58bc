// SPDX-License-Identifier: Apache-2.0
// base/check.h: aborts on a broken invariant (a bug in foretoken, never bad input).
#pragma once

namespace foretoken {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition) noexcept;

}  // namespace foretoken

#define FORETOKEN_CHECK(condition)        \
  (static_cast<bool>(condition) ? void(0) \
                                : ::foretoken::CheckFailed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define FORETOKEN_DCHECK(condition) void(0)
#else
#define FORETOKEN_DCHECK(condition) FORETOKEN_CHECK(condition)
#endif
