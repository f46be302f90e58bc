// SPDX-License-Identifier: Apache-2.0
#include "capi/errors.h"

#include <fmt/format.h>

#include <limits>
#include <new>
#include <utility>

#include "capi/option_words.h"

namespace foretoken::capi {

foretoken_status CodeOf(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return FORETOKEN_INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return FORETOKEN_NOT_FOUND;
    case ErrorCode::kInvalidFile:
      return FORETOKEN_INVALID_FILE;
    case ErrorCode::kUnsupported:
      return FORETOKEN_UNSUPPORTED;
    case ErrorCode::kMismatch:
      return FORETOKEN_MISMATCH;
    case ErrorCode::kTooLarge:
      return FORETOKEN_TOO_LARGE;
    case ErrorCode::kIo:
      return FORETOKEN_IO;
    case ErrorCode::kNoMemory:
      return FORETOKEN_NO_MEMORY;
    case ErrorCode::kBusy:
      return FORETOKEN_BUSY;
    case ErrorCode::kStopped:
      return FORETOKEN_STOPPED;
    case ErrorCode::kDeadline:
      return FORETOKEN_DEADLINE;
    case ErrorCode::kRankLost:
      return FORETOKEN_RANK_LOST;
  }
  return FORETOKEN_INTERNAL;
}

namespace {

// Without memory for the error there is the code alone.
template <typename Make>
foretoken_status Fill(foretoken_error** error, foretoken_status code, Make&& make) noexcept {
  if (error == nullptr) return code;
  try {
    *error = new foretoken_error(make());
  } catch (const std::exception&) {
    *error = nullptr;
  }
  return code;
}

}  // namespace

foretoken_status Report(foretoken_error** error, const Error& why) noexcept {
  const foretoken_status code = CodeOf(why.code);
  return Fill(error, code, [&] {
    Error said = InKeys(why);
    return foretoken_error{code, std::move(said.field), std::move(said.message)};
  });
}

foretoken_status Report(foretoken_error** error, foretoken_status code,
                        const char* message) noexcept {
  return Fill(error, code, [&] { return foretoken_error{code, {}, message}; });
}

Status Needs(const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return InvalidField(name, "it is NULL; pass what the function's description names");
}

Status NeedsList(const void* list, std::size_t count, const char* name) {
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    return FailField(ErrorCode::kTooLarge, name,
                     fmt::format("{} elements are more than a list may have; pass fewer", count));
  return count == 0 ? Status() : Needs(list, name);
}

}  // namespace foretoken::capi

extern "C" {

foretoken_status foretoken_error_code(const foretoken_error* error) {
  return error == nullptr ? FORETOKEN_OK : error->code;
}

const char* foretoken_error_field(const foretoken_error* error) {
  return error == nullptr ? "" : error->field.c_str();
}

const char* foretoken_error_message(const foretoken_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

void foretoken_error_free(foretoken_error* error) {
  delete error;
}

}  // extern "C"
