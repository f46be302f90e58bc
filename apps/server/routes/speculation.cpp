// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Speculation(Service& service, const HttpRequest&, LogLine&) {
  return {.body = SpeculationJson({.engine = &service.engine.summary(),
                                   .totals = service.totals.sum(),
                                   .recent_speedup = service.totals.RecentSpeedup(),
                                   .plain_ms_per_token = service.engine_thread.plain_ms_per_token(),
                                   .pass_costs = service.engine_thread.pass_costs(),
                                   .load = service.queue.load(),
                                   .parallel = service.parallel})};
}

}  // namespace

const Route kSpeculationRoute = {"GET", "/v1/speculation", false, Speculation};

}  // namespace foretoken::server
