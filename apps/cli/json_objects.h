// SPDX-License-Identifier: Apache-2.0
// cli/json_objects.h: what the --json of several verbs has.
#pragma once

#include <optional>
#include <string>

#include "base/json/json_reader.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

// Bytes that are not UTF-8 become U+FFFD.
inline std::string JsonLine(const Json& json) {
  return json.dump() + "\n";
}

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

inline Json ModelJson(const ModelSummary& model) {
  return {{"path", model.path},
          {"architecture", model.architecture},
          {"parameters", model.parameters},
          {"type", model.type}};
}

inline Json DraftModelJson(const EngineSummary& engine) {
  return engine.draft_model ? ModelJson(*engine.draft_model) : Json(nullptr);
}

// The models and heads that draft, in the order of their files, by the names that statistics and requests
// use.
inline Json DraftsJson(const EngineSummary& engine) {
  Json drafts = Json::array();
  for (const DrafterSummary& draft : engine.drafters) {
    drafts.push_back({{"name", draft.name}, {"method", draft.method}});
    drafts.back().update(ModelJson(draft.model));
    drafts.back().update(
        {{"weight_bytes", draft.model.weight_bytes}, {"cache_bytes", draft.model.cache_bytes}});
  }
  return drafts;
}

}  // namespace foretoken::cli
