// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/check_pair_report.h"

namespace foretoken::cli {
namespace {

using Json = nlohmann::ordered_json;

Json FileJson(const FileFacts& facts, const ModelSummary* loaded) {
  Json json = {
      {"path", facts.path}, {"architecture", facts.architecture}, {"parameters", facts.parameters},
      {"type", facts.type}, {"file_bytes", facts.bytes},          {"drafts_as", facts.drafts_as}};
  json["weight_bytes"] = loaded != nullptr ? Json(loaded->weight_bytes) : Json(nullptr);
  json["cache_bytes"] = loaded != nullptr ? Json(loaded->cache_bytes) : Json(nullptr);
  return json;
}

Json MeasuredJson(const PairMeasurement& m) {
  Json passes = Json::object(), speedups = Json::object();
  for (const auto& [rows, us] : m.prices.pass) passes[std::to_string(rows)] = us;
  for (int k = 1; k <= static_cast<int>(m.survival.size()); ++k)
    speedups[std::to_string(k)] = Speedup(m.prices, m.survival, k);
  Json json = {{"method", m.engine->summary().method},
               {"isa", m.engine->summary().isa},
               {"threads", m.engine->summary().threads},
               {"verify_us", std::move(passes)},
               {"draft_us", m.prices.draft},
               {"rest_us", m.prices.rest},
               {"drafted", m.speculative.stats.drafted},
               {"accepted", m.speculative.stats.accepted},
               {"survival", m.survival},
               {"expected_speedup", std::move(speedups)},
               {"best_k", m.best.k},
               {"best_speedup", m.best.speedup}};
  json["break_even_acceptance"] = m.break_even ? Json(*m.break_even) : Json(nullptr);
  return json;
}

}  // namespace

std::string PairJson(const PairCheck& check) {
  const EngineSummary* engine = check.measured ? &check.measured->engine->summary() : nullptr;
  const VocabularyDifference& v = check.fit.vocabulary;
  Json json = {{"usable", check.obstacle.empty()},
               {"obstacle", check.obstacle},
               {"model", FileJson(check.fit.target, engine ? &engine->target : nullptr)},
               {"draft_model", FileJson(check.fit.draft, engine ? engine->draft.get() : nullptr)},
               {"vocabulary",
                {{"model", v.target},
                 {"draft_model", v.draft},
                 {"shared", v.shared()},
                 {"differing", v.differing.size()},
                 {"first", v.first}}},
               {"prompts", check.prompts},
               {"temperature", check.request->sampling.temperature},
               {"seed", check.request->seed}};
  json["measured"] = check.measured ? MeasuredJson(*check.measured) : Json(nullptr);
  json["recommendation"] = check.Recommendation();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretoken::cli
