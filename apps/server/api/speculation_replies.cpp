// SPDX-License-Identifier: Apache-2.0
#include "server/api/speculation_replies.h"

#include <utility>

#include "draft/methods.h"
#include "foretoken/catalogue.h"
#include "server/api/model_replies.h"
#include "server/api/object_text.h"
#include "server/api/stats_json.h"

namespace foretoken::server {
namespace {

// What a request may choose, with words for people.
Json ChoicesJson(const EngineSummary& engine) {
  Json methods = Json::array(), strategies = Json::array(), controllers = Json::array();
  for (const std::string& name : engine.methods) {
    const DrafterInfo* const row = FindDrafter(DrafterOf(name));
    Json method = {{"name", name}};
    if (row != nullptr) method["help"] = row->help;
    if (row != nullptr && !row->drafts_from.empty()) method["drafts_from"] = row->drafts_from;
    methods.push_back(std::move(method));
  }
  for (const std::string& name : engine.strategies) {
    const StrategyInfo* const row = FindStrategy(name);
    strategies.push_back({{"name", name},
                          {"help", row->help},
                          {"lossless", row->lossless},
                          {"same_text", row->same_text}});
  }
  for (const ControllerInfo* const row : AllControllers())
    controllers.push_back({{"name", row->name}, {"help", row->help}});
  return {{"methods", methods}, {"strategies", strategies}, {"controllers", controllers}};
}

Json CopyJson(const CopyProgress& copy) {
  Json json = {{"state", Name(copy.state)}};
  if (!copy.types.empty()) {
    json["type"] = copy.types;
    json["made_bytes"] = copy.made_bytes;
    json["bytes"] = copy.bytes;
  }
  if (!copy.why.empty()) json["error"] = copy.why;
  return json;
}

}  // namespace

std::string SpeculationJson(const SpeculationState& state) {
  const EngineSummary& engine = *state.engine;
  Json json = {
      {"method", engine.method},         {"lookahead", engine.controller},
      {"strategy", engine.strategy},     {"lossless", engine.lossless},
      {"strategies", engine.strategies}, {"num_speculative_tokens", engine.num_speculative_tokens},
      {"parallel", state.parallel},      {"running", state.load.running},
      {"waiting", state.load.waiting},   {"draft_models", DraftModelsJson(engine)},
      {"choices", ChoicesJson(engine)}};
  if (state.copy.state != CopyProgress::State::kNone) json["copy"] = CopyJson(state.copy);
  if (state.recent_speedup) json["estimated_speedup"] = *state.recent_speedup;
  if (state.plain_ms_per_token > 0) json["plain_ms_per_token"] = state.plain_ms_per_token;
  // By rows, as `bench --json` has it.
  for (const RowCost& cost : state.pass_costs)
    json["verify_us"][std::to_string(cost.rows)] = cost.us;
  Json totals = {{"requests", state.totals.requests}};
  PutTimedCounts(totals, state.totals.speculation);
  json["totals"] = std::move(totals);
  json["drafters"] = DrafterCountsJson(state.totals.drafters);
  return OneLine(json);
}

}  // namespace foretoken::server
