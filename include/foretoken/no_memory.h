// SPDX-License-Identifier: Apache-2.0
// foretoken/no_memory.h: memory that the system refuses, as an Error.
//
// Nothing in foretoken throws, but the standard library does if memory is short. Each function that
// returns a Result catches that and returns kNoMemory; your program can do the same for its own
// parts. What was made so far is destroyed; nothing else changes.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretoken/cancellation.h"
#include "foretoken/result.h"

namespace foretoken {

// "<what>: the system gives no more memory; ...". If there is no memory even for the message, it is
// "out of memory".
inline Error NoMemory(std::string_view what) noexcept {
  constexpr std::string_view kWhy =
      ": the system gives no more memory; free some, ask for less (a smaller context, fewer "
      "requests), or raise the limit";
  try {
    std::string message;
    message.reserve(what.size() + kWhy.size());
    message.append(what).append(kWhy);
    return {ErrorCode::kNoMemory, std::move(message)};
  } catch (const std::exception&) {
    return {ErrorCode::kNoMemory, "out of memory"};  // short enough to need none
  }
}

// Whether an exception of the standard library means that memory or a thread was refused.
inline bool SaysNoMemory(const std::exception& e) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return true;
  if (dynamic_cast<const std::length_error*>(&e) != nullptr) return true;
  const auto* const system = dynamic_cast<const std::system_error*>(&e);
  return system != nullptr && (system->code() == std::errc::resource_unavailable_try_again ||
                               system->code() == std::errc::not_enough_memory);
}

// Returns the result of call(), a Result or a Status; or kNoMemory if memory was refused meanwhile,
// or kStopped if a CancellationScope ended it. Other exceptions belong to the caller and pass
// through.
template <typename Call>
auto CatchNoMemory(std::string_view what, Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const WorkCancelled&) {
    return Fail(ErrorCode::kStopped,
                std::string(what) + ": it was cancelled; ask again if you want it");
  } catch (const std::exception& e) {
    if (!SaysNoMemory(e)) throw;
  }
  return Fail(NoMemory(what));
}

}  // namespace foretoken
