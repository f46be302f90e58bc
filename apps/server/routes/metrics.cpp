// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Render(Service& service, const HttpRequest&, LogLine&) {
  const JobQueue::Load load = service.queue.load();
  const double plain_ms = service.engine_thread.plain_ms_per_token();
  Metrics::Now now{.running = load.running,
                   .waiting = load.waiting,
                   .cache_usage = service.engine_thread.cache_usage(),
                   .log_lines_dropped = service.log.dropped(),
                   .memory = &service.overload,
                   .estimated_speedup = service.totals.RecentSpeedup()};
  if (plain_ms > 0) now.plain_ms_per_token = plain_ms;
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.Render(now)};
}

}  // namespace

extern const Route kMetricsRoute = {.method = "GET",
                                    .path = "/metrics",
                                    .about = "Prometheus, below",
                                    .handle = Render,
                                    .always = true};

}  // namespace foretoken::server
