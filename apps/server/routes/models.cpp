// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"
#include "server/router.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

constexpr const char kModelPath[] = "/v1/models/*";

ServedModel Served(const Service& service) {
  return {.name = service.limits.name,
          .aliases = service.limits.aliases,
          .created = service.started,
          .engine = &service.engine.summary(),
          .chats = service.chats};
}

HttpResponse Models(Service& service, const HttpRequest&, LogLine&) {
  return {.body = ModelsJson(Served(service))};
}

HttpResponse Model(Service& service, const HttpRequest& request, LogLine&) {
  const std::string id = request.path.substr(sizeof(kModelPath) - 2);
  if (service.limits.Serves(id)) return {.body = ModelJson(Served(service))};
  return ErrorResponse(NoSuchModel(id, service.limits.name));
}

}  // namespace

const Route kModelsRoute = {"GET", "/v1/models", false, Models};
const Route kModelRoute = {"GET", kModelPath, false, Model};

}  // namespace foretoken::server
