// SPDX-License-Identifier: Apache-2.0
// server/routes/routes.h: the table of paths. Each endpoint is a .cpp that ends with its row.
#pragma once

#include <span>

#include "server/net/http.h"
#include "server/service.h"

namespace foretoken::server {

struct Route {
  const char* method;
  const char* path;  // with a * at its end: all paths that begin so
  bool open;         // answered without a key
  // Adds what a log should say about this request to the line.
  HttpResponse (*handle)(Service& service, const HttpRequest& request, LogLine& line);
  bool always = false;  // answered even while the server refuses everything else
};

std::span<const Route* const> Routes();

extern const Route kChatCompletionsRoute, kCompletionsRoute, kDetokenizeRoute, kHealthRoute,
    kIndexRoute, kMetricsRoute, kModelRoute, kModelsRoute, kPageRoute, kSpeculationRoute,
    kTokenizeRoute, kVersionRoute;

}  // namespace foretoken::server
