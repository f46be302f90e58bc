// SPDX-License-Identifier: Apache-2.0
// server/api/model_replies.h: what replies say of the served model and of those that draft for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/engine.h"
#include "server/api/json_fields.h"

namespace foretoken::server {

// GET /v1/models and GET /v1/models/NAME.
struct ServedModel {
  std::string name;
  std::vector<std::string> aliases;
  std::int64_t created = 0;
  const EngineSummary* engine = nullptr;
  bool chats = false;  // it has a chat template
};
std::string ModelsJson(const ServedModel& model);
std::string ModelJson(const ServedModel& model);

// The networks that draft, by the names that requests and statistics use.
Json DraftModelsJson(const EngineSummary& engine);

}  // namespace foretoken::server
