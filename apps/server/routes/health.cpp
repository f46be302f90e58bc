// SPDX-License-Identifier: Apache-2.0
#include "server/api/plain_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Health(Service& service, const HttpRequest&, LogLine&) {
  const bool draining = service.requests.draining();
  const Status files = service.engine.FileStatus();
  return {.status = draining || !files ? 503 : 200,
          .body = HealthJson(draining, service.requests.load(), service.overload, files)};
}

}  // namespace

extern const Route kHealthRoute = {
    .method = "GET",
    .path = "/health",
    .about =
        "`status`: `ok`, or with 503 `draining` or `error`. It is `error`, with the reason in "
        "`error`, if a model file was changed or cut short: requests then get 503 until a "
        "restart. It is also `error` when a rank was lost: the server then ends. "
        "Also `running`, `waiting`; `overload`: a state of [Overload](serving.md#overload); "
        "`memory`: `limit_bytes`, `resident_bytes`, `requests_bytes`",
    .open = true,
    .handle = Health,
    .always = true,
    .reply = "Health",
    .failing = 503};

}  // namespace foretoken::server
