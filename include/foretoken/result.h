// SPDX-License-Identifier: Apache-2.0
// foretoken/result.h: how every function of foretoken that can fail reports failure.
//
// Result<T> holds a value or an Error; Status is Result<void>. Nothing in foretoken throws. The
// members are those of std::expected (has_value, operator*, error, ...). *r is unchecked: test
// first, or use FORETOKEN_TRY.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace foretoken {

enum class ErrorCode {
  kInvalidArgument,  // a flag, field or option out of its range (CLI exit code 2)
  kNotFound,         // no such file, tensor, metadata key
  kInvalidFile,      // a file that is damaged or of another kind
  kUnsupported,      // well formed, but not something this build runs
  kMismatch,         // two parts that do not belong together (draft and target vocabulary)
  kTooLarge,         // a prompt longer than the context, a memory limit exceeded
  kIo,               // the operating system refused
  kNoMemory,         // the system gives no more memory, or no more threads
  kBusy,             // a queue is full; the same call may succeed later
  kStopped,          // it was told to accept nothing more, or to end what runs
  kDeadline,         // it did not end in the time that it was given
};

// Writes `text` of a file, a flag or a request so that an error message can repeat it: in one line,
// at most `most_bytes` long ("..." follows a cut), with escapes for control characters, for
// characters that hide or turn the text around them, and for bytes that are not UTF-8.
std::string Shown(std::string_view text, std::size_t most_bytes = 80);

// Bounds and escapes a whole message in the same way. A message that needs no change is returned as
// it is, without allocating memory.
std::string OneLine(std::string message);

// One line for a person: "<what>: <why>; <what to do>".
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;

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
[[nodiscard]] inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, OneLine(std::move(message))});
}
[[nodiscard]] inline tl::unexpected<Error> Fail(Error error) {
  return Fail(error.code, std::move(error.message));
}
[[nodiscard]] inline tl::unexpected<Error> InvalidArgument(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
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
// The same for a Status, or for a value that is not needed.
#define FORETOKEN_CHECK_OK(expression)                                        \
  do {                                                                        \
    auto try_status = (expression);                                           \
    if (!try_status) return ::foretoken::Fail(std::move(try_status).error()); \
  } while (false)
