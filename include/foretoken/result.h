// SPDX-License-Identifier: Apache-2.0
// foretoken/result.h: how every function of foretoken that can fail reports failure.
//
// Result<T> holds a value or an Error; Status is Result<void>. Nothing in foretoken throws. The
// members are those of std::expected (has_value, operator*, error, ...). *r is unchecked: test
// first, or use FORETOKEN_TRY.
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace foretoken {

enum class ErrorCode {
  kInvalidArgument,  // a flag, field or option out of its range (CLI exit code 2)
  kNotFound,         // no such file, tensor, metadata key
  kInvalidFile,      // a file that is damaged or of another kind
  kUnsupported,      // well formed, but not something this build runs
  kMismatch,         // two parts that do not belong together (draft and target vocabulary)
  kTooLarge,         // a prompt that leaves no room in the context, a memory limit exceeded
  kIo,               // the operating system refused
  kNoMemory,         // the system gives no more memory, or no more threads
  kBusy,             // a queue is full; the same call may succeed later
  kStopped,          // it was told to accept nothing more, or to end what runs
  kDeadline,         // it did not end in the time that it was given
  kRankLost,         // a process that computes with this one is gone, or does not answer
};

// Writes `text` of a file, a flag or a request so that an error message can repeat it: in one line,
// at most `most_bytes` long ("..." follows a cut), with escapes for control characters, for
// characters that hide or turn the text around them, and for bytes that are not UTF-8.
std::string Shown(std::string_view text, std::size_t most_bytes = 80);

// Bounds and escapes a whole message in the same way. A message that needs no change is returned as
// it is, without allocating memory.
std::string OneLine(std::string message);

// One line for a person, "<what>: <why>; <what to do>", and what a program needs of it.
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
  // The member or setting that is wrong, as the library names it ("top_k"); "": no single one. The
  // message begins with it, behind what In has put before it.
  std::string field = {};

  // The message without the field, for those who call it by another name.
  std::string_view why() const {
    const std::string_view whole = message;
    const bool named =
        !field.empty() && whole.starts_with(field) && whole.substr(field.size()).starts_with(": ");
    return whole.substr(named ? field.size() + 2 : 0);
  }

  // Names the field of a message that says only why it is wrong.
  Error Of(std::string_view name) && {
    field = name;
    return std::move(*this).In(name);
  }

  // Prefixes the message on its way up: Error{"tensor a: ..."}.In("open x.gguf") reads "open
  // x.gguf: tensor a: ...".
  Error In(std::string_view context) && {
    message.insert(0, ": ");
    message.insert(0, context);
    return std::move(*this);
  }
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Makes the message one line of bounded length, whatever it repeats.
[[nodiscard]] inline tl::unexpected<Error> Fail(Error error) {
  error.message = OneLine(std::move(error.message));
  return tl::unexpected<Error>(std::move(error));
}
[[nodiscard]] inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return Fail(Error{.code = code, .message = std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> InvalidArgument(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}
// The error of one field; why: "<why>; <what to do>".
[[nodiscard]] inline tl::unexpected<Error> FailField(ErrorCode code, std::string field,
                                                     std::string_view why) {
  std::string message = field;
  message.append(": ").append(why);
  return Fail(Error{.code = code, .message = std::move(message), .field = std::move(field)});
}
[[nodiscard]] inline tl::unexpected<Error> InvalidField(std::string field, std::string_view why) {
  return FailField(ErrorCode::kInvalidArgument, std::move(field), why);
}

// Memory that the system refuses, as an Error. Nothing in foretoken throws, but the standard library
// does if memory is short. Each function that returns a Result catches that and returns kNoMemory;
// your program can do the same for its own parts. What was made so far is destroyed; nothing else
// changes.
//
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

// Thrown inside of the library where a CancellationScope (cancellation.h) ends work.
struct WorkCancelled final : std::exception {
  const char* what() const noexcept override { return "nobody waits for this work"; }
};

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

#define FORETOKEN_CONCAT_(a, b) a##b
#define FORETOKEN_CONCAT(a, b) FORETOKEN_CONCAT_(a, b)
// FORETOKEN_TRY(auto x, F()): x is *F(), or the enclosing function returns F()'s Error.
#define FORETOKEN_TRY(declaration, expression)                                     \
  auto FORETOKEN_CONCAT(try_, __LINE__) = (expression);                            \
  if (!FORETOKEN_CONCAT(try_, __LINE__))                                           \
    return ::foretoken::Fail(std::move(FORETOKEN_CONCAT(try_, __LINE__)).error()); \
  declaration = std::move(*FORETOKEN_CONCAT(try_, __LINE__))
// FORETOKEN_TRY for a Status, or for a value that is not needed.
#define FORETOKEN_CHECK_OK(expression)                                        \
  do {                                                                        \
    auto try_status = (expression);                                           \
    if (!try_status) return ::foretoken::Fail(std::move(try_status).error()); \
  } while (false)
