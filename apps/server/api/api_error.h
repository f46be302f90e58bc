// SPDX-License-Identifier: Apache-2.0
// server/api/api_error.h: what a client gets when a request fails: OpenAI's error object, as
// values.
#pragma once

#include <string>
#include <utility>

#include "foretoken/result.h"

namespace foretoken::server {

struct ApiError {
  int status = 400;
  std::string message;  // "<what>: <why>; <what to do>"
  std::string type = "invalid_request_error";
  std::string param = {};  // the field; "": null
  std::string code = {};   // "": null
  int retry_after_s = 0;   // 0: no such header
};

// For the log.
inline const std::string& NameOf(const ApiError& error) {
  return error.code.empty() ? error.type : error.code;
}

// A value, or the error for the client.
template <typename T>
using Parsed = tl::expected<T, ApiError>;

inline tl::unexpected<ApiError> Refuse(ApiError error) {
  return tl::unexpected<ApiError>(std::move(error));
}

// An invalid field; the message begins with its name.
inline ApiError BadField(const std::string& field, std::string_view why, std::string code = {}) {
  std::string message = field + ": ";
  return {.message = message.append(why), .param = field, .code = std::move(code)};
}

// The request names a model that is not the served one.
inline ApiError NoSuchModel(const std::string& name, const std::string& served) {
  ApiError error =
      BadField("model", "there is no model '" + Shown(name, 64) + "' here; use '" + served + "'",
               "model_not_found");
  error.status = 404;
  return error;
}

inline ApiError NoMemory() {
  return {.status = 503,
          .message = "server: it has no memory left for this request; try again, or send less",
          .type = "server_error",
          .code = "overloaded",
          .retry_after_s = 1};
}

// Nobody reads it; the log and the metrics have its code and its status.
inline ApiError ClientGone() {
  return {.status = 499,
          .message = "request: its client has gone; ask again",
          .type = "server_error",
          .code = "client_gone"};
}

inline ApiError ShuttingDown() {
  return {.status = 503,
          .message = "server: it is shutting down; ask another, or again when it is back",
          .type = "server_error",
          .code = "draining",
          .retry_after_s = 5};
}

// The request's address, or its key, already has as many running requests as it may have.
inline ApiError TooManyRequests() {
  return {.status = 429,
          .message =
              "requests: as many as this address or key may have are under way; wait for "
              "one of them, or raise --max-requests-per-address or --max-requests-per-key",
          .type = "rate_limit_error",
          .code = "too_many_requests",
          .retry_after_s = 1};
}

}  // namespace foretoken::server
