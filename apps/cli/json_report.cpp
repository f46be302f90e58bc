// SPDX-License-Identifier: Apache-2.0
#include "cli/json_report.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "cli/json_objects.h"
#include "foretoken/speculative_config.h"
#include "server/api/stats_json.h"
#include "settings/option_flags.h"

namespace foretoken::cli {
namespace {

void PutIfAny(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

// JSON has no infinities; an impossible token has the log-probability null.
Json Number(float value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json LogprobsJson(const Completion& completion) {
  Json tokens = Json::array();
  for (std::size_t i = 0; i < completion.logprobs.size(); ++i) {
    const TokenLogprobs& logprobs = completion.logprobs[i];
    Json top = Json::array();
    for (const auto& [id, logprob] : logprobs.top) {
      top.push_back({{"id", id}, {"logprob", Number(logprob)}});
    }
    tokens.push_back({{"id", completion.token_ids[i]},
                      {"logprob", Number(logprobs.logprob)},
                      {"top", std::move(top)}});
  }
  return tokens;
}

// Numbers and switches as such; "auto", "off" and names as strings.
Json ConfigJson(const SpeculativeOptions& options) {
  using Type = SpeculativeKey::Type;
  Json config = Json::object();
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    const std::string text = key.print(options);
    const bool is_text =
        key.type == Type::kName || key.type == Type::kPath || key.type == Type::kText;
    config[key.name] = is_text ? Json(text) : ReadJson(text).value_or(Json(text));
  }
  return config;
}

Json SpeculationJson(const Generation& generation) {
  const EngineSummary& engine = *generation.engine;
  Json json = {
      {"method", engine.method},
      {"strategy", generation.strategy},
      {"lossless", engine.lossless},
      {"lookahead", generation.completion->controller.empty() ? engine.controller
                                                              : generation.completion->controller},
      {"num_speculative_tokens", engine.num_speculative_tokens}};
  server::PutCounts(json, generation.completion->speculation);
  if (generation.config != nullptr) json["config"] = ConfigJson(*generation.config);
  return json;
}

Json TimingsJson(const Generation& generation) {
  const Timings& timings = generation.completion->timings;
  const SpeculationStats& stats = generation.completion->speculation;
  Json json = {{"load_ms", generation.engine->load_ms}, {"prompt_ms", timings.prompt_ms}};
  PutIfAny(json, "prompt_tokens_per_second", PerSecond(timings.prompt_tokens, timings.prompt_ms));
  if (timings.cached_prompt_tokens > 0) json["cached_prompt_tokens"] = timings.cached_prompt_tokens;
  if (timings.preemptions > 0) json["preemptions"] = timings.preemptions;
  json["decode_ms"] = timings.decode_ms;
  PutIfAny(json, "tokens_per_second", PerSecond(timings.decoded_tokens, timings.decode_ms));
  json["draft_ms"] = stats.draft_ms;
  json["verify_ms"] = stats.verify_ms;
  json["overhead_ms"] = stats.overhead_ms;
  return json;
}

Json ComparisonJson(const Comparison& comparison) {
  return {{"speedup", comparison.speedup()},
          {"identical", comparison.identical},
          {"repeats", comparison.repeats},
          {"drafted", comparison.speculation.drafted},
          {"accepted", comparison.speculation.accepted},
          {"tokens_per_second", 1000 / comparison.speculative_ms_per_token},
          {"plain_tokens_per_second", 1000 / comparison.plain_ms_per_token}};
}

Json TensorJson(const TensorSummary& tensor) {
  return {{"name", tensor.name},
          {"type", tensor.type},
          {"shape", tensor.shape},
          {"bytes", tensor.bytes}};
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json IntegerOrNull(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? Json(value) : Json(nullptr);
}

Json MemoryJson(const ModelMemory& memory) {
  const MemoryNeeds& needs = memory.needs;
  return {{"weight_bytes", needs.dense + needs.experts},
          {"expert_bytes", needs.experts},
          {"cache_bytes", needs.cache},
          {"checkpoint_bytes", needs.checkpoints},
          {"scratch_bytes", needs.scratch},
          {"embedding_bytes", needs.embedding},
          {"context_size", memory.context_size},
          {"available_bytes", memory.available_bytes},
          {"experts_paged", memory.experts_paged},
          {"obstacle", TextOrNull(settings::InFlags(memory.obstacle))}};
}

}  // namespace

std::string GenerationJson(const Generation& generation) {
  const Completion& completion = *generation.completion;
  const EngineSummary& engine = *generation.engine;
  Json json = {{"text", completion.text},
               {"token_ids", completion.token_ids},
               {"prompt_token_ids", completion.prompt_token_ids},
               {"finish_reason", Name(completion.finish_reason)},
               {"seed", completion.seed}};
  if (!completion.logprobs.empty()) json["logprobs"] = LogprobsJson(completion);
  json["speculation"] = SpeculationJson(generation);
  json["timings"] = TimingsJson(generation);
  if (generation.comparison) json["comparison"] = ComparisonJson(*generation.comparison);
  json["model"] = ModelJson(engine.target);
  json["draft_model"] = DraftModelJson(engine);
  json["draft_models"] = DraftsJson(engine);
  json["isa"] = engine.isa;
  json["threads"] = engine.threads;
  return JsonLine(json);
}

std::string InspectionJson(const Inspection& inspection, bool with_tensors, bool with_metadata) {
  Json types = Json::array();
  for (const TypeTotal& total : inspection.types) {
    types.push_back({{"type", total.type},
                     {"tensors", total.count},
                     {"bytes", total.bytes},
                     {"supported", total.supported}});
  }
  Json json = {{"path", inspection.path},
               {"format", inspection.format},
               {"file_bytes", inspection.file_bytes},
               {"name", TextOrNull(inspection.name)},
               {"architecture", TextOrNull(inspection.architecture)},
               {"parameters", inspection.parameters},
               {"type", TextOrNull(inspection.type)},
               {"context_length", IntegerOrNull(inspection.context_length)},
               {"tokenizer", TextOrNull(inspection.tokenizer)},
               {"runnable", inspection.obstacle.empty()},
               {"whole_model", inspection.whole_model},
               {"drafts_as", inspection.drafts_as},
               {"obstacle", TextOrNull(inspection.obstacle)},
               {"memory", inspection.memory ? MemoryJson(*inspection.memory) : Json(nullptr)},
               {"tensor_types", std::move(types)}};
  if (with_tensors) {
    json["tensors"] = Json::array();
    for (const TensorSummary& tensor : inspection.tensors) {
      json["tensors"].push_back(TensorJson(tensor));
    }
  }
  if (with_metadata) {
    json["metadata"] = Json::object();
    for (const auto& [key, value] : inspection.metadata) json["metadata"][key] = value;
  }
  return JsonLine(json);
}

std::string TokensJson(std::span<const std::int32_t> ids, const std::vector<std::string>& pieces) {
  const Json json = {{"token_ids", std::vector<std::int32_t>(ids.begin(), ids.end())},
                     {"pieces", pieces}};
  return JsonLine(json);
}

std::string TextJson(const std::string& text, std::span<const std::int32_t> ids) {
  const Json json = {{"text", text},
                     {"token_ids", std::vector<std::int32_t>(ids.begin(), ids.end())}};
  return JsonLine(json);
}

}  // namespace foretoken::cli
