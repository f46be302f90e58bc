// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include <fmt/format.h>

#include <string>

#include "server/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

// Without a hint, by its time, how much of the key was right.
bool SameKey(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
  return difference == 0;
}

// "/v1/models/*": to all that begins so and goes on.
bool Leads(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return path == pattern;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

ApiError NoSuchPath(const HttpRequest& request) {
  return {.status = 404,
          .message = fmt::format("{} {}: no such path; GET / has a page, and docs/server.md lists "
                                 "the others",
                                 request.method, request.path.substr(0, 128)),
          .code = "not_found"};
}

}  // namespace

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = ErrorJson(error)};
  if (error.retry_after_s > 0)
    response.headers.emplace_back("Retry-After", fmt::format("{}", error.retry_after_s));
  return response;
}

bool Router::HasKey(const HttpRequest& request) const {
  if (service_.options.api_keys.empty()) return true;
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view given = request.authorization;
  if (!given.starts_with(kScheme)) return false;
  given.remove_prefix(kScheme.size());
  bool found = false;
  for (const std::string& key : service_.options.api_keys) found |= SameKey(given, key);
  return found;
}

HttpResponse Router::Answer(const HttpRequest& request, LogLine& line) {
  const std::string& method = request.method == "HEAD" ? "GET" : request.method;
  const Route* route = nullptr;
  std::string methods;
  for (const Route* const row : Routes()) {
    if (!Leads(row->path, request.path)) continue;
    if (method == row->method) route = row;
    methods += (methods.empty() ? "" : ", ") + std::string(row->method);
  }
  const bool open = route != nullptr && route->open;
  if (!open && !HasKey(request))
    return ErrorResponse({.status = 401,
                          .message = "Authorization: no valid key is given; send 'Bearer KEY'",
                          .type = "authentication_error",
                          .code = "invalid_api_key"});
  if (route != nullptr) return route->handle(service_, request, line);
  if (methods.empty()) return ErrorResponse(NoSuchPath(request));
  HttpResponse response =
      ErrorResponse({.status = 405,
                     .message = fmt::format("{} {}: the path has no such method; use {}",
                                            request.method, request.path, methods),
                     .code = "method_not_allowed"});
  response.headers.emplace_back("Allow", methods);
  return response;
}

HttpResponse Router::Handle(const HttpRequest& request) {
  LogLine line;
  line.Add("client", request.remote_address);
  line.Add("method", request.method).Add("path", request.path.substr(0, 256));
  HttpResponse response = Answer(request, line);
  service_.metrics.AddResponse(response.status);
  if (response.stream) return response;  // it logs itself at its end
  service_.log.Write(LogLine(line).Add("status", response.status));
  return response;
}

HttpResponse Router::Refuse(int status) {
  const char* why = status == 408   ? "it did not arrive in time; send it again"
                    : status == 413 ? "it is too large; send less, or raise --max-body-bytes"
                    : status == 414 ? "its address is too long; shorten it"
                    : status == 415 ? "its body is a form; send JSON"
                    : status == 431 ? "its header is too large; send less"
                    : status == 500 ? "the server failed at it; please report it"
                    : status == 503 ? "too many others are arriving; try again"
                                    : "it is not valid HTTP; correct it";
  service_.metrics.AddResponse(status);
  service_.log.Write(LogLine().Add("status", status));
  return ErrorResponse({.status = status,
                        .message = std::string("request: ") + why,
                        .type = status >= 500 ? "server_error" : "invalid_request_error",
                        .code = status == 413 ? "request_too_large" : "",
                        .retry_after_s = status == 503 ? 1 : 0});
}

void Router::NoteCut(const std::string& remote_address) {
  service_.log.Write(LogLine().Add("client", remote_address).Add("error", "client_too_slow"));
}

}  // namespace foretoken::server
