// SPDX-License-Identifier: Apache-2.0
// server/router.h: from a request to its route: keys, unknown paths, logs.
#pragma once

#include <string>

#include "server/api_error.h"
#include "server/http.h"
#include "server/service.h"

namespace foretoken::server {

// The answer to a failure.
HttpResponse ErrorResponse(const ApiError& error);

class Router {
 public:
  explicit Router(Service& service) : service_(service) {}

  HttpResponse Handle(const HttpRequest& request);
  // To what was no request; also logged.
  HttpResponse Refuse(int status);
  // Logs that a client took its answer too slowly, and lost it.
  void NoteCut(const std::string& remote_address);

 private:
  HttpResponse Answer(const HttpRequest& request, LogLine& line);
  bool HasKey(const HttpRequest& request) const;

  Service& service_;
};

}  // namespace foretoken::server
