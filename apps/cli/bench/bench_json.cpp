// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_json.h"

#include <fmt/format.h>

#include "cli/json_objects.h"

namespace foretoken::cli {
namespace {

tl::unexpected<Error> BadLine(const std::string& why) {
  return Fail(
      ErrorCode::kInvalidFile,
      why + "; write one object with a text `prompt`, or a list of texts `turns`, per line");
}

std::string Category(const Json& object) {
  const Json& category = object.at("category");
  return category.is_string() ? category.text() : "";
}

void PutSpread(Json& object, const Spread& s) {
  object["min"] = s.least;
  object["max"] = s.most;
}

Json Rate(const Spread& tokens_per_second) {
  Json json = {{"tokens_per_second", tokens_per_second.median}};
  PutSpread(json, tokens_per_second);
  return json;
}

Json BenchModelJson(const ModelSummary& model) {
  Json json = ModelJson(model);
  json["weight_bytes"] = model.weight_bytes;
  return json;
}

// {"1": 12.5, "2": ...}, for one context.
Json ByRows(const std::vector<PassCost>& costs, int context, double unit) {
  Json json = Json::object();
  for (const PassCost& cost : costs)
    if (cost.context == context) json[std::to_string(cost.rows)] = cost.us.median / unit;
  return json;
}

Json Costs(const std::vector<PassCost>& costs) {
  Json list = Json::array();
  for (const PassCost& cost : costs) {
    Json point = {{"rows", cost.rows}, {"context", cost.context}, {"us", cost.us.median}};
    PutSpread(point, cost.us);
    list.push_back(std::move(point));
  }
  return list;
}

Json Speculative(const BenchRow& row, int k) {
  if (!row.speculative) return nullptr;
  Json json = Rate(*row.speculative);
  if (const auto length = row.stats.mean_acceptance_length())
    json["mean_acceptance_length"] = *length;
  if (const auto rate = row.stats.acceptance_rate()) json["acceptance_rate"] = *rate;
  json["k"] = k;
  const SpeculationStats& s = row.stats;
  json["draft_ms"] = s.draft_ms;
  json["verify_ms"] = s.verify_ms;
  json["overhead_ms"] = s.overhead_ms;
  return json;
}

Json Rows(const std::vector<BenchRow>& rows, int k) {
  Json list = Json::array();
  for (const BenchRow& row : rows) list.push_back(BenchRowJson(row, k));
  return list;
}

Json OverheadJson(const Bench& bench) {
  const StepOverhead& o = bench.measured.overhead;
  Json json = {{"dispatch_us", o.dispatch_us},
               {"barrier_us", o.barrier_us},
               {"target_barriers", o.target_barriers},
               {"draft_barriers", o.draft_barriers},
               {"judged_rows", o.verified_rows},
               {"judge_us", o.verify_us},
               {"draw_us", o.draw_us},
               {"target_us", o.target_us()},
               {"target_share", bench.target_overhead()}};
  if (const auto share = bench.draft_overhead()) {
    json["draft_us"] = o.draft_us();
    json["draft_share"] = *share;
  }
  return json;
}

// Null where the target has none.
Json Experts(const Bench& bench) {
  const ModelSummary& target = bench.engine->target;
  if (target.experts == 0) return nullptr;
  const auto object = [](const auto& by_rows) {
    Json json = Json::object();
    for (const auto& [rows, n] : by_rows) json[rows] = n;
    return json;
  };
  const ExpertsByRows experts = ExpertsOf(bench);
  return {{"layers", target.expert_layers},
          {"count", target.experts},
          {"used", target.experts_used},
          {"distinct_random", object(experts.measured)},
          {"distinct_decoding", object(experts.decoding)}};
}

Json MachineJson(const Bench& bench) {
  const Spread& memory = bench.measured.memory_gb_per_s;
  return {{"cpu", bench.machine.cpu},          {"isa", bench.engine->isa},
          {"cores", bench.machine.cores},      {"threads", bench.engine->threads},
          {"memory_gb_per_s", memory.median},  {"memory_gb_per_s_min", memory.least},
          {"memory_gb_per_s_max", memory.most}};
}

}  // namespace

Result<BenchPrompt> PromptOfLine(const std::string& line) {
  const auto object = ReadJson(line);
  if (!object) return BadLine("this is not JSON");
  if (!object->is_object()) return BadLine("this is not a JSON object");
  const Json *const prompt = object->find("prompt"), *const turns = object->find("turns");
  const bool of_turns = prompt == nullptr;
  if (of_turns && turns == nullptr) return BadLine("it has neither `prompt` nor `turns`");
  if (of_turns && (!turns->is_array() || turns->empty()))
    return BadLine("`turns` is not a list of strings with at least one");
  const Json& text = of_turns ? turns->front() : *prompt;
  if (!text.is_string() || text.text().empty())
    return BadLine(
        fmt::format("`{}` is not a string, or an empty one", of_turns ? "turns" : "prompt"));
  return BenchPrompt{text.text(), Category(*object), {}};
}

Json BenchRowJson(const BenchRow& row, int k) {
  Json json = {{"batch", row.batch}, {"prompts", row.prompts}};
  if (!row.kind.empty()) json["kind"] = row.kind;
  json["plain"] = Rate(row.plain);
  json["speculative"] = Speculative(row, k);
  json["speedup"] = row.speedup ? Json(row.speedup->median) : Json(nullptr);
  if (row.speedup) {
    json["speedup_min"] = row.speedup->least;
    json["speedup_max"] = row.speedup->most;
  }
  return json;
}

std::string BenchJson(const Bench& bench) {
  const EngineSummary& engine = *bench.engine;
  const BenchRuns& runs = bench.runs;
  const int k = engine.num_speculative_tokens, context = bench.context();
  const BenchRow& first = runs.batches.front();
  const Json row = BenchRowJson(first, k);
  Json json = {
      {"machine", MachineJson(bench)},
      {"model", BenchModelJson(engine.target)},
      {"draft_model", engine.draft_model ? BenchModelJson(*engine.draft_model) : Json(nullptr)},
      {"verify_us", ByRows(bench.measured.target, context, 1)},
      {"verify_ratio", ByRows(bench.measured.target, context, bench.one_row_us())},
      {"decode_gb_per_s", bench.weights_gb_per_s(bench.measured.target.front())},
      {"draft_us", ByRows(bench.measured.draft, context, 1)},
      {"prompt_tokens_per_second", bench.measured.prompt_tokens_per_second.median},
      {"plain", row.at("plain")},
      {"speculative", row.at("speculative")},
      {"speedup", row.at("speedup")},
      {"identical", OrNull(runs.identical)},
      {"prompts", bench.n_prompts}};
  json["batch"] = first.batch;
  json["tokens"] = bench.request->max_new_tokens;
  json["temperature"] = bench.request->sampling.temperature;
  json["seed"] = bench.request->seed;
  json["method"] = engine.method;
  json["strategy"] = runs.strategy;
  json["repeats"] = bench.repeats;
  json["context"] = context;
  json["pass_repeats"] = bench.passes;
  json["target_costs"] = Costs(bench.measured.target);
  json["draft_costs"] = Costs(bench.measured.draft);
  json["draft_models"] = DraftsJson(*bench.engine);
  json["overhead"] = OverheadJson(bench);
  json["experts"] = Experts(bench);
  json["batches"] = Rows(runs.batches, k);
  json["kinds"] = Rows(runs.kinds, k);
  return JsonLine(json);
}

}  // namespace foretoken::cli
