// SPDX-License-Identifier: Apache-2.0
#include "server/api/model_replies.h"

#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

Json SizesJson(const ModelSummary& model) {
  return {{"architecture", model.architecture},
          {"type", model.type},
          {"parameters", model.parameters},
          {"vocabulary_size", model.vocabulary_size},
          {"context_size", model.context_size}};
}

Json ServedModelJson(const ServedModel& served) {
  const EngineSummary& engine = *served.engine;
  Json model = {{"id", served.name},
                {"object", "model"},
                {"created", served.created},
                {"owned_by", "foretoken"},
                {"aliases", served.aliases}};
  model["meta"] = SizesJson(engine.target);
  model["meta"]["chat_template"] = served.chats;
  model["draft"] = engine.draft_model ? SizesJson(*engine.draft_model) : Json(nullptr);
  model["drafts"] = DraftModelsJson(engine);
  return model;
}

}  // namespace

Json DraftModelsJson(const EngineSummary& engine) {
  Json drafts = Json::array();
  for (const DrafterSummary& draft : engine.drafters) {
    Json json = {{"name", draft.name}, {"method", draft.method}};
    json.update(SizesJson(draft.model));
    drafts.push_back(std::move(json));
  }
  return drafts;
}

std::string ModelJson(const ServedModel& model) {
  return OneLine(ServedModelJson(model));
}

std::string ModelsJson(const ServedModel& model) {
  return OneLine(Json{{"object", "list"}, {"data", Json::array({ServedModelJson(model)})}});
}

}  // namespace foretoken::server
