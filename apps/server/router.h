// SPDX-License-Identifier: Apache-2.0
// server/router.h: finds the route of a request; checks hosts, origins, keys and paths; logs.
#pragma once

#include <optional>
#include <string>

#include "server/api/api_error.h"
#include "server/net/http.h"
#include "server/net/web_rules.h"
#include "server/routes/routes.h"
#include "server/service.h"

namespace foretoken::server {

// The reply to a failure.
HttpResponse ErrorResponse(const ApiError& error);

// Answers from the header alone where that is enough: refusals, and the routes of GET, which take
// only a moment. Routes of POST run in a worker.
class Router : public Responder {
 public:
  explicit Router(Service& service);

  std::optional<HttpResponse> AnswerHead(HttpRequest& request) override;
  HttpResponse Answer(const HttpRequest& request) override;
  HttpResponse Refuse(const HttpRequest& request, int status) override;
  void NoteCut(const HttpRequest& request) override;

 private:
  std::optional<HttpResponse> Screen(HttpRequest& request) const;
  std::optional<HttpResponse> Ration(const HttpRequest& request);
  void TellIdle(const HttpRequest& request, const IdleFields& idle);
  HttpResponse Finish(const HttpRequest& request, HttpResponse response, const LogLine& line);

  Service& service_;
  const WebRules rules_;
  Quota by_address_, by_key_;  // requests
};

}  // namespace foretoken::server
