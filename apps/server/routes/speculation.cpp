// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/api/speculation_replies.h"
#include "server/routes/routes.h"
#include "settings/option_flags.h"

namespace foretoken::server {
namespace {

CopyProgress CopyOf(const Engine& engine) {
  CopyProgress copy = engine.copy();
  copy.why = settings::InFlags(std::move(copy.why));
  return copy;
}

HttpResponse Speculation(Service& service, const HttpRequest&, LogLine&) {
  return {.body =
              SpeculationJson({.engine = &service.engine.summary(),
                               .totals = service.totals.sum(),
                               .recent_speedup = service.totals.RecentSpeedup(),
                               .plain_ms_per_token = service.requests.snapshot().plain_ms_per_token,
                               .pass_costs = service.requests.PassCosts(),
                               .load = service.requests.load(),
                               .parallel = service.engine.summary().max_sequences,
                               .copy = CopyOf(service.engine)})};
}

}  // namespace

extern const Route kSpeculationRoute = {
    .method = "GET",
    .path = "/v1/speculation",
    .about =
        "what drafts, and how; `choices`: the `methods`, `strategies` and `controllers` of this "
        "server with what they do, of which a request may choose the first two; `draft_models`: "
        "the models and heads that draft, by the names that requests and statistics use; "
        "`copy`: the copy of the model that drafts, `waiting` for its turn, in the `making` "
        "(`made_bytes` of `bytes`), `ready`, or `refused` with the reason in `error`; counts of "
        "all requests since the start, together and by drafter; the last minute's speed-up; "
        "`verify_us`: what a pass costs by its rows, when the last request ended",
    .handle = Speculation,
    .reply = "SpeculationState"};

}  // namespace foretoken::server
