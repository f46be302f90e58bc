// SPDX-License-Identifier: Apache-2.0
// server/net/web_rules.h: what web pages may do here, by the rules of browsers.
//
// A page of another site can make a browser on this machine send requests. Three things stop it:
// its origin is told nothing unless it was allowed (CORS); a name of its own that it made to point
// to this machine is refused (DNS rebinding); and so is a body that is not declared as JSON, which
// is all that a page may send without asking first, or that the browser says is another site's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/net/http.h"

namespace foretoken::server {

class WebRules {
 public:
  struct Options {
    std::string host;                        // where the server listens
    std::vector<std::string> cors_origins;   // "https://example.org", or "*"
    std::vector<std::string> allowed_hosts;  // names beside this machine's own
    bool needs_key = false;                  // no request is answered without one
  };
  explicit WebRules(Options options);

  // Whether the name that the request asks for is one of the server's. Where it listens on a network
  // and was given none, all are if it asks for a key; else this machine's name and addresses, which no
  // page of another site can have.
  bool KnowsHost(const HttpRequest& request) const;
  // The answer to a browser that asks before it sends; nothing: the request is another.
  std::optional<HttpResponse> Preflight(const HttpRequest& request) const;
  // Lets the page read the answer, if its origin is allowed.
  void Mark(const HttpRequest& request, HttpResponse& response) const;
  // A browser says that a page of another site sends it, and the page's origin is not allowed.
  bool IsOfOtherSite(const HttpRequest& request) const;
  static bool IsJson(const HttpRequest& request);
  // The body is sent as it is, not compressed.
  static bool IsPlain(const HttpRequest& request);

 private:
  bool Allows(std::string_view origin) const;

  Options options_;
  bool checks_hosts_ = false, allows_addresses_ = false;
};

}  // namespace foretoken::server
