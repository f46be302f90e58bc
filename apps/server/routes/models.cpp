// SPDX-License-Identifier: Apache-2.0
#include "server/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Models(Service& service, const HttpRequest&, LogLine&) {
  return {.body = ModelsJson(service.limits.name, service.started, service.engine.summary())};
}

}  // namespace

const Route kModelsRoute = {"GET", "/v1/models", false, Models};

}  // namespace foretoken::server
