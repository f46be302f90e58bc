// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Health(Service& service, const HttpRequest&, LogLine&) {
  const bool draining = service.queue.draining();
  const Status files = service.engine.FileStatus();
  return {.status = draining || !files ? 503 : 200,
          .body = HealthJson(draining, service.queue.load(), service.overload, files)};
}

}  // namespace

const Route kHealthRoute = {"GET", "/health", true, Health, true};

}  // namespace foretoken::server
