// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/nearest_name.h"
#include "foretoken/cancellation.h"
#include "server/api/plain_replies.h"
#include "server/net/api_keys.h"
#include "server/net/client_address.h"

namespace foretoken::server {
namespace {

// The star of "/v1/models/*" or "/v1/responses/*/cancel" stands for one character or more.
bool Leads(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return path == pattern;
  return path.size() >= pattern.size() && path.starts_with(pattern.substr(0, star)) &&
         path.ends_with(pattern.substr(star + 1));
}

// A client's text, shortened for a message.
std::string Short(std::string_view text) {
  return std::string(text.substr(0, 128));
}

ApiError NoSuchPath(const HttpRequest& request) {
  std::vector<std::string_view> paths;
  for (const Route* const row : Routes()) paths.emplace_back(row->path);
  const std::string_view nearest =
      request.path.size() < 128 ? NearestName(request.path, paths) : std::string_view();
  return {.status = 404,
          .message =
              fmt::format("{} {}: no such path; {}", Short(request.method), Short(request.path),
                          nearest.empty() ? "GET / has a page, and docs/server.md lists the others"
                                          : fmt::format("the nearest one is {}", nearest)),
          .code = "not_found"};
}

// In the form of the API that the path belongs to.
HttpResponse RefusalOf(const HttpRequest& request, const ApiError& error) {
  HttpResponse response = ErrorResponse(error);
  if (request.route != nullptr && request.route->refusal != nullptr)
    response.body = request.route->refusal(error);
  return response;
}

HttpResponse NoKey(const HttpRequest& request) {
  HttpResponse response =
      RefusalOf(request, {.status = 401,
                          .message = "Authorization: no valid key is given; send 'Bearer KEY'",
                          .type = "authentication_error",
                          .code = "invalid_api_key"});
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

ApiError Busy(std::string message, std::string code) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .code = std::move(code),
          .retry_after_s = 1};
}

ApiError NoConnection() {
  return Busy("server: all of its connections are taken; try again", "no_connection");
}

ApiError TooManyConnections() {
  return {.status = 429,
          .message =
              "connections: this address has as many as it may; close some, or raise "
              "--max-connections-per-address",
          .type = "rate_limit_error",
          .code = "too_many_connections",
          .retry_after_s = 1};
}

ApiError NotThisHost(const HttpRequest& request) {
  return {.status = 403,
          .message = fmt::format("Host: '{}' is not a name of this server; use localhost, or start "
                                 "it with --allowed-host NAME",
                                 Short(request.host)),
          .type = "permission_error",
          .code = "host_not_allowed"};
}

ApiError NotThisSite() {
  return {.status = 403,
          .message =
              "Origin: pages of other sites may not use this server; start it with "
              "--cors-origin ORIGIN",
          .type = "permission_error",
          .code = "origin_not_allowed"};
}

ApiError NotJson(const HttpRequest& request) {
  const std::string_view type = request.Field("content-type");
  return {.status = 415,
          .message = fmt::format(
              "Content-Type: {}; send 'Content-Type: application/json' (curl: "
              "-H 'Content-Type: application/json')",
              type.empty() ? "none is given" : fmt::format("'{}' is not JSON", Short(type))),
          .code = "unsupported_media_type"};
}

ApiError Encoded(const HttpRequest& request) {
  return {
      .status = 415,
      .message = fmt::format("Content-Encoding: '{}' is not decoded here; send the body as it is",
                             Short(request.Field("content-encoding"))),
      .code = "unsupported_media_type"};
}

HttpResponse NoSuchMethod(const HttpRequest& request, const std::string& methods) {
  HttpResponse response =
      ErrorResponse({.status = 405,
                     .message = fmt::format("{} {}: the path has no such method; use {}",
                                            Short(request.method), Short(request.path), methods),
                     .code = "method_not_allowed"});
  response.headers.emplace_back("Allow", methods);
  return response;
}

bool HasBody(const HttpRequest& request) {
  const std::string_view length = request.Field("content-length");
  return !request.Field("transfer-encoding").empty() || (!length.empty() && length != "0");
}

LogLine LineOf(const HttpRequest& request) {
  LogLine line;
  line.Add("client", request.remote_address).Add("request_id", request.id);
  if (!request.method.empty())
    line.Add("method", Short(request.method)).Add("path", request.path.substr(0, 256));
  return line;
}

const Route* Find(std::string_view method, std::string_view path, std::string& methods) {
  std::string_view pattern;  // the longest one, which says most
  for (const Route* const row : Routes())
    if (const std::string_view own = row->path; own.size() > pattern.size() && Leads(own, path))
      pattern = own;
  const Route* found = nullptr;
  for (const Route* const row : Routes()) {
    if (row->path != pattern) continue;
    if (method == row->method) found = row;
    methods += (methods.empty() ? "" : ", ") + std::string(row->method);
  }
  return found;
}

// Null if there is no such path, or not with this method; `methods` are those that the path has. As
// with llama.cpp, /v1 may be left out; then the request gets it.
const Route* Find(HttpRequest& request, std::string& methods) {
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* const found = Find(method, request.path, methods);
  if (!methods.empty()) return found;
  std::string whole = "/v1" + request.path;
  const Route* const longer = Find(method, whole, methods);
  if (!methods.empty()) request.path = std::move(whole);
  return longer;
}

}  // namespace

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = ErrorJson(error)};
  if (error.retry_after_s > 0)
    response.headers.emplace_back("Retry-After", fmt::format("{}", error.retry_after_s));
  return response;
}

Router::Router(Service& service)
    : service_(service),
      rules_({.host = service.options.host,
              .cors_origins = service.options.cors_origins,
              .allowed_hosts = service.options.allowed_hosts,
              .needs_key = !service.options.api_keys.empty()}),
      by_address_(
          service.options.limits.requests_per_address.value_or(service.requests.capacity() / 2)),
      by_key_(service.options.limits.requests_per_key.value_or(
          service.options.api_keys.size() > 1 ? service.requests.capacity() / 2 : 0)) {}

// Answers requests that no route gets to see; finds the route of the others.
std::optional<HttpResponse> Router::Screen(HttpRequest& request) const {
  std::string methods;
  const Route* const route = request.route = Find(request, methods);
  if (!rules_.KnowsHost(request)) return RefusalOf(request, NotThisHost(request));
  if (auto preflight = rules_.Preflight(request)) return preflight;
  const bool open = route != nullptr && route->open;
  const auto& keys = service_.options.api_keys;
  if (!open && !keys.empty() && !KeyOf(request, keys)) return NoKey(request);
  if (route == nullptr)
    return methods.empty() ? RefusalOf(request, NoSuchPath(request))
                           : NoSuchMethod(request, methods);
  if (!WebRules::IsPlain(request)) return RefusalOf(request, Encoded(request));
  if (route->method == std::string_view("GET")) return std::nullopt;
  if (rules_.IsOfOtherSite(request)) return RefusalOf(request, NotThisSite());
  const bool has_body = route->method == std::string_view("POST") && !route->without_body;
  if (has_body && !WebRules::IsJson(request)) return RefusalOf(request, NotJson(request));
  return std::nullopt;
}

// Gives the request its part of the memory that the server has left, or returns the answer that
// refuses it.
std::optional<HttpResponse> Router::Ration(const HttpRequest& request) {
  if (request.route->always) return std::nullopt;
  if (request.in_reserve) return RefusalOf(request, NoConnection());
  if (service_.overload.refuses_requests()) return RefusalOf(request, NoMemory());
  if (request.method != "POST") return std::nullopt;
  const ServerOptions& options = service_.options;
  auto& shares = request.charges->shares;
  if (options.limits.requests_per_address || !IsThisMachine(request.remote_address)) {
    auto share = by_address_.Take(ClientOf(request.remote_address));
    if (!share) return RefusalOf(request, TooManyRequests());
    shares.push_back(*std::move(share));
  }
  if (const auto key = KeyOf(request, options.api_keys)) {
    auto share = by_key_.Take(std::to_string(*key));
    if (!share) return RefusalOf(request, TooManyRequests());
    shares.push_back(*std::move(share));
  }
  return std::nullopt;
}

void Router::TellIdle(const HttpRequest& request, const IdleFields& idle) {
  for (const std::string& name : idle.names())
    if (service_.told.Tell(fmt::format("{} {}", request.route->path, name)))
      service_.log.Write(LogLine()
                             .Add("path", request.route->path)
                             .Add("field", name)
                             .Add("notice", "it is accepted and changes nothing; told once"));
}

std::optional<HttpResponse> Router::AnswerHead(HttpRequest& request) {
  const std::string& field = service_.options.limits.client_address_header;
  if (!field.empty())
    if (std::string address = ForwardedAddress(request, field); !address.empty())
      request.remote_address = std::move(address);
  auto refused = Screen(request);
  if (!refused) refused = Ration(request);
  if (refused) return Finish(request, *std::move(refused), LineOf(request));
  if (request.method == "POST" || HasBody(request)) return std::nullopt;
  return Answer(request);
}

// Work on a body ends when its client has gone, or when the server accepts nothing any more.
HttpResponse Router::Answer(const HttpRequest& request) {
  const Charges& charges = *request.charges;
  const CancellationScope scope(
      [&] { return charges.client_gone || service_.requests.draining(); });
  LogLine line = LineOf(request);
  IdleFields idle;
  HttpResponse response = request.route->handle(service_, request, line);
  TellIdle(request, idle);
  if (!scope.cancelled()) return Finish(request, std::move(response), line);
  const ApiError error = charges.client_gone ? ClientGone() : ShuttingDown();
  return Finish(request, RefusalOf(request, error), LineOf(request).Add("error", NameOf(error)));
}

HttpResponse Router::Finish(const HttpRequest& request, HttpResponse response,
                            const LogLine& line) {
  rules_.Mark(request, response);
  if (response.later) return response;  // it counts and logs itself
  service_.metrics.AddResponse(response.status);
  service_.log.Write(LogLine(line).Add("status", response.status));
  return response;
}

HttpResponse Router::Refuse(const HttpRequest& request, int status) {
  const char* why = status == 408   ? "it did not arrive in time; send it again"
                    : status == 413 ? "it is too large; send less, or raise --max-body-bytes and "
                                      "--max-memory"
                    : status == 431 ? "its header is too large; send less"
                    : status == 500 ? "the server failed at it; please report it"
                                    : "it is not valid HTTP; correct it";
  ApiError error{.status = status,
                 .message = std::string("request: ") + why,
                 .type = status >= 500 ? "server_error" : "invalid_request_error",
                 .code = status == 413 ? "request_too_large" : ""};
  if (status == 429) error = TooManyConnections();
  if (status == 503) error = NoMemory();
  return Finish(request, RefusalOf(request, error), LineOf(request).Add("error", NameOf(error)));
}

void Router::NoteCut(const HttpRequest& request) {
  service_.log.Write(LogLine()
                         .Add("client", request.remote_address)
                         .Add("request_id", request.id)
                         .Add("error", "client_too_slow"));
}

}  // namespace foretoken::server
