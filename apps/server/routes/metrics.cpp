// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Render(Service& service, const HttpRequest&, LogLine&) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.Render({.load = service.requests.load(),
                                          .engine = service.requests.snapshot(),
                                          .log_lines_dropped = service.log.dropped(),
                                          .next_turn_tokens = service.next_turns.tokens(),
                                          .memory = &service.overload,
                                          .copy = service.engine.copy(),
                                          .estimated_speedup = service.totals.RecentSpeedup()})};
}

}  // namespace

extern const Route kMetricsRoute = {.method = "GET",
                                    .path = "/metrics",
                                    .about = "Prometheus, below",
                                    .handle = Render,
                                    .always = true,
                                    .reply_type = "text/plain"};

}  // namespace foretoken::server
