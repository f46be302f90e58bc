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

extern const Route kModelsRoute = {
    .method = "GET",
    .path = "/v1/models",
    .about =
        "the model with its sizes and `aliases`; `meta.chat_template`: whether it has a template, "
        "and so can chat",
    .handle = Models};
extern const Route kModelRoute = {
    .method = "GET",
    .path = kModelPath,
    .about = "the same for one name; another name is 404, `model_not_found`",
    .handle = Model};

}  // namespace foretoken::server
