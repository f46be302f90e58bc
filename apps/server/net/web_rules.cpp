// SPDX-License-Identifier: Apache-2.0
#include "server/net/web_rules.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server/net/client_address.h"

namespace foretoken::server {
namespace {

bool Has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string NameOfMachine() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? Lower(name.data()) : std::string();
}

// Names of fields, in a list.
bool IsNameList(std::string_view text) {
  return text.size() <= 4096 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-_, ").find(c) != std::string_view::npos;
         });
}

}  // namespace

WebRules::WebRules(Options options) : options_(std::move(options)) {
  options_.host = Lower(options_.host);
  const bool own = IsThisMachineOnly(options_.host), named = !options_.allowed_hosts.empty();
  checks_hosts_ = own || named || !options_.needs_key;
  allows_addresses_ = !own && !named;
  for (std::string& name : options_.allowed_hosts) name = Lower(name);
  for (const char* const name : {"localhost", "127.0.0.1", "[::1]"})
    options_.allowed_hosts.emplace_back(name);
  options_.allowed_hosts.push_back(options_.host);
  if (allows_addresses_) options_.allowed_hosts.push_back(NameOfMachine());
}

bool WebRules::KnowsHost(const HttpRequest& request) const {
  // HTTP/1.0 need not say; browsers do.
  if (!checks_hosts_ || (!request.http11 && request.host.empty())) return true;
  return Has(options_.allowed_hosts, request.host) ||
         (allows_addresses_ && IsAddress(request.host));
}

bool WebRules::Allows(std::string_view origin) const {
  return !origin.empty() && (Has(options_.cors_origins, "*") || Has(options_.cors_origins, origin));
}

std::optional<HttpResponse> WebRules::Preflight(const HttpRequest& request) const {
  if (request.method != "OPTIONS" || request.Field("access-control-request-method").empty() ||
      !Allows(request.Field("origin")))
    return std::nullopt;
  HttpResponse response{.status = 204};
  response.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE"},
                      {"Access-Control-Max-Age", "600"}};
  const std::string_view names = request.Field("access-control-request-headers");
  if (!names.empty() && IsNameList(names))
    response.headers.emplace_back("Access-Control-Allow-Headers", names);
  if (request.Field("access-control-request-private-network") == "true")
    response.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  return response;
}

void WebRules::Mark(const HttpRequest& request, HttpResponse& response) const {
  if (options_.cors_origins.empty()) return;
  const bool any = Has(options_.cors_origins, "*");
  if (!any) response.headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.Field("origin");
  if (!Allows(origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", any ? "*" : std::string(origin));
  response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
}

bool WebRules::IsOfOtherSite(const HttpRequest& request) const {
  const std::string_view site = request.Field("sec-fetch-site");
  return (site == "cross-site" || site == "same-site") && !Allows(request.Field("origin"));
}

bool WebRules::IsPlain(const HttpRequest& request) {
  const std::string encoding = Lower(request.Field("content-encoding"));
  return encoding.empty() || encoding == "identity";
}

bool WebRules::IsJson(const HttpRequest& request) {
  std::string type = Lower(request.Field("content-type"));
  type.resize(std::min(type.find_first_of("; \t"), type.size()));
  return type == "application/json" ||
         (type.starts_with("application/") && type.ends_with("+json"));
}

}  // namespace foretoken::server
