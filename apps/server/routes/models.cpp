// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "server/api/model_replies.h"
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

// The path has kept %2F, which clients write for a slash in a name.
std::string WithSlashes(std::string_view id) {
  std::string name;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool slash = id.substr(i, 3) == "%2F" || id.substr(i, 3) == "%2f";
    name += slash ? '/' : id[i];
    if (slash) i += 2;
  }
  return name;
}

HttpResponse Models(Service& service, const HttpRequest&, LogLine&) {
  return {.body = ModelsJson(Served(service))};
}

HttpResponse Model(Service& service, const HttpRequest& request, LogLine&) {
  const std::string id = WithSlashes(std::string_view(request.path).substr(sizeof(kModelPath) - 2));
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
    .handle = Models,
    .reply = "Models"};
extern const Route kModelRoute = {
    .method = "GET",
    .path = kModelPath,
    .about = "the same for one name; another name is 404, `model_not_found`",
    .handle = Model,
    .reply = "Model"};

}  // namespace foretoken::server
