// SPDX-License-Identifier: Apache-2.0
// cli/pair/draft_models_json.h: the models and heads that draft, for --json.
#pragma once

#include <nlohmann/json.hpp>

#include "foretoken/engine.h"

namespace foretoken::cli {

// In the order of their files, by the names that statistics and requests use.
inline nlohmann::ordered_json DraftsJson(const EngineSummary& engine) {
  auto drafts = nlohmann::ordered_json::array();
  for (const DrafterSummary& draft : engine.drafters)
    drafts.push_back({{"name", draft.name},
                      {"method", draft.method},
                      {"path", draft.model.path},
                      {"architecture", draft.model.architecture},
                      {"parameters", draft.model.parameters},
                      {"type", draft.model.type},
                      {"weight_bytes", draft.model.weight_bytes},
                      {"cache_bytes", draft.model.cache_bytes}});
  return drafts;
}

}  // namespace foretoken::cli
