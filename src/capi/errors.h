// SPDX-License-Identifier: Apache-2.0
// capi/errors.h: how the functions of foretoken.h report. The body of each runs in Guarded, from which no
// exception comes out.
#pragma once

#include <string>
#include <utility>

#include "foretoken.h"
#include "foretoken/result.h"

struct foretoken_error {
  foretoken_status code = FORETOKEN_INTERNAL;
  std::string field, message;
};

namespace foretoken::capi {

// Thrown where a callback of the caller failed.
struct CallbackFailed {
  const char* what;
};

foretoken_status CodeOf(ErrorCode code) noexcept;

// Fills in *error, if there is one to fill in, and returns its code.
foretoken_status Report(foretoken_error** error, const Error& why) noexcept;
foretoken_status Report(foretoken_error** error, foretoken_status code,
                        const char* message) noexcept;

// Runs `body`, which returns a Status.
template <typename Body>
foretoken_status Guarded(foretoken_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    const Status status = CatchNoMemory("foretoken", std::forward<Body>(body));
    return status ? FORETOKEN_OK : Report(error, status.error());
  } catch (const CallbackFailed& e) {
    return Report(error, FORETOKEN_CALLBACK, e.what);
  } catch (const std::exception& e) {
    return Report(error, FORETOKEN_INTERNAL, e.what());
  } catch (...) {
    return Report(error, FORETOKEN_INTERNAL, "an unknown exception; please report it");
  }
}

// An argument that must not be NULL.
[[nodiscard]] Status Needs(const void* argument, const char* name);
// A list of `count` elements: NULL only if it is empty, and not more than an int counts.
[[nodiscard]] Status NeedsList(const void* list, std::size_t count, const char* name);

}  // namespace foretoken::capi
