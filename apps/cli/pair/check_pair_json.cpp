// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_json.h"
#include "cli/json_objects.h"
#include "cli/pair/check_pair_report.h"

namespace foretoken::cli {
namespace {

Json FileJson(const lab::FileFacts& facts, const ModelSummary* loaded) {
  Json json = {
      {"path", facts.path}, {"architecture", facts.architecture}, {"parameters", facts.parameters},
      {"type", facts.type}, {"file_bytes", facts.bytes},          {"drafts_as", facts.drafts_as}};
  json["weight_bytes"] = loaded != nullptr ? Json(loaded->weight_bytes) : Json(nullptr);
  json["cache_bytes"] = loaded != nullptr ? Json(loaded->cache_bytes) : Json(nullptr);
  return json;
}

Json MeasuredJson(const PairMeasurement& m) {
  const PairEstimate& e = m.estimate;
  Json passes = Json::object(), speedups = Json::object();
  for (const auto& [rows, us] : e.prices.pass) passes[std::to_string(rows)] = us;
  for (int k = 1; k <= e.shares.most(); ++k)
    speedups[std::to_string(k)] = lab::Speedup(e.prices, e.shares, k);
  Json json = {{"method", m.engine->summary().method},
               {"isa", m.engine->summary().isa},
               {"threads", m.engine->summary().threads},
               {"verify_us", std::move(passes)},
               {"draft_us", e.prices.draft},
               {"begin_us", e.prices.begin},
               {"rest_us", e.prices.rest},
               {"plain_us", e.prices.plain},
               {"drafted", e.stats.drafted},
               {"accepted", e.stats.accepted},
               {"survival", e.survival},
               {"drafted_share", e.shares.drafted},
               {"gained_share", e.shares.gained},
               {"expected_speedup", std::move(speedups)},
               {"best_k", e.best.k},
               {"best_speedup", m.best ? m.best->speedup->median : 1.0}};
  json["break_even_acceptance"] = OrNull(e.break_even);
  json["lookahead"] = m.controller;
  json["as_set"] = BenchRowJson(m.as_set, m.most);
  json["best"] = m.best ? BenchRowJson(*m.best, e.best.k) : Json(nullptr);
  return json;
}

// What a draft with another vocabulary loses.
Json MapJson(const PairCheck& check) {
  Json json = {{"pairs", check.fit.map->pairs.size()}};
  if (check.loss)
    json.update({{"text_share_unpaired", 1 - check.loss->MostAccepted()},
                 {"draft_probability_unpaired", check.loss->MeanOutside()},
                 {"draft_tokens_per_token", check.loss->OwnTokens()}});
  return json;
}

}  // namespace

std::string PairJson(const PairCheck& check) {
  const EngineSummary* engine = check.measured ? &check.measured->engine->summary() : nullptr;
  const VocabularyDifference& v = check.fit.vocabulary;
  Json json = {{"usable", check.obstacle.empty()},
               {"obstacle", check.obstacle},
               {"model", FileJson(check.fit.target, engine ? &engine->target : nullptr)},
               {"draft_model", nullptr},
               {"vocabulary",
                {{"model", v.target},
                 {"draft_model", v.draft},
                 {"shared", v.shared()},
                 {"differing", v.differing.size()},
                 {"first", v.first}}},
               {"prompts", check.prompts},
               {"tokens", check.request->max_new_tokens},
               {"repeats", check.repeats},
               {"temperature", check.request->sampling.temperature},
               {"seed", check.request->seed}};
  if (check.fit.draft)
    json["draft_model"] = FileJson(*check.fit.draft, engine ? engine->draft_model.get() : nullptr);
  else
    json["vocabulary"] = nullptr;
  if (check.fit.map) json["vocabulary"]["map"] = MapJson(check);
  json["measured"] = check.measured ? MeasuredJson(*check.measured) : Json(nullptr);
  json["recommendation"] = check.Recommendation();
  return JsonLine(json);
}

}  // namespace foretoken::cli
