// SPDX-License-Identifier: Apache-2.0
#include "server/api/reply_statistics.h"

#include <algorithm>
#include <optional>

#include "server/api/object_text.h"
#include "server/api/stats_json.h"

namespace foretoken::server {
namespace {

void PutIfAny(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

std::optional<double> PerSecond(std::int64_t n, double ms) {
  if (n <= 0 || !(ms > 0)) return std::nullopt;
  return 1000.0 * static_cast<double>(n) / ms;
}

// The statistics of all choices of a reply together.
struct Together {
  SpeculationStats speculation;
  Timings timings;
  DrafterCounts drafters;
  double actual_ms = 0, plain_ms = 0, queue_ms = 0, first_token_ms = 0;
  std::string strategy, controller;
  bool lossless = true;
  std::uint64_t seed = 0;
};

Together Sum(std::span<const Choice> choices) {
  Together sum;
  for (const Choice& choice : choices) {
    const Completion& completion = choice.end.completion;
    sum.speculation.Add(completion.speculation);
    sum.timings.prompt_ms += completion.timings.prompt_ms;
    sum.timings.decode_ms += completion.timings.decode_ms;
    sum.timings.prompt_tokens += completion.timings.prompt_tokens;
    sum.timings.decoded_tokens += completion.timings.decoded_tokens;
    for (const auto& [name, count] : choice.end.drafters) sum.drafters[name] += count;
    sum.actual_ms += choice.end.actual_ms;
    sum.plain_ms += choice.end.plain_ms;
    sum.queue_ms = std::max(sum.queue_ms, choice.end.queue_ms);
    sum.first_token_ms = std::max(sum.first_token_ms, choice.end.first_token_ms);
    sum.strategy = completion.strategy;
    sum.controller = completion.controller;
    sum.lossless = completion.lossless;
    sum.seed = completion.seed;
  }
  return sum;
}

std::optional<double> Speedup(double plain_ms, double actual_ms) {
  if (!(plain_ms > 0) || !(actual_ms > 0)) return std::nullopt;
  return plain_ms / actual_ms;
}

// llama.cpp's names, and the waiting times.
Json TimingsJson(const Together& sum) {
  const Timings& t = sum.timings;
  Json json = {{"prompt_n", t.prompt_tokens}, {"prompt_ms", t.prompt_ms}};
  if (t.prompt_tokens > 0) json["prompt_per_token_ms"] = t.prompt_ms / t.prompt_tokens;
  PutIfAny(json, "prompt_per_second", PerSecond(t.prompt_tokens, t.prompt_ms));
  json["predicted_n"] = t.decoded_tokens;
  json["predicted_ms"] = t.decode_ms;
  if (t.decoded_tokens > 0) json["predicted_per_token_ms"] = t.decode_ms / t.decoded_tokens;
  PutIfAny(json, "predicted_per_second", PerSecond(t.decoded_tokens, t.decode_ms));
  json["draft_n"] = sum.speculation.drafted;
  json["draft_n_accepted"] = sum.speculation.accepted;
  json["queue_ms"] = sum.queue_ms;
  json["first_token_ms"] = sum.first_token_ms;
  return json;
}

Json RequestSpeculationJson(const ReplyFrame& frame, const Together& sum) {
  Json json = {{"method", frame.method},
               {"strategy", sum.strategy},
               {"lossless", sum.lossless},
               {"lookahead", sum.controller.empty() ? frame.engine->controller : sum.controller},
               {"num_speculative_tokens", frame.num_speculative_tokens}};
  PutIfAny(json, "estimated_speedup", Speedup(sum.plain_ms, sum.actual_ms));
  PutTimedCounts(json, sum.speculation);
  json["drafters"] = DrafterCountsJson(sum.drafters);
  return json;
}

}  // namespace

Usage UsageOf(std::span<const Choice> choices, int n) {
  Usage usage;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceEnd& end = choices[i].end;
    if (i % static_cast<std::size_t>(n) == 0) {
      usage.prompt_tokens += std::ssize(end.completion.prompt_token_ids);
      usage.cached_prompt_tokens += end.completion.timings.cached_prompt_tokens;
    }
    usage.completion_tokens += std::ssize(end.completion.token_ids);
    usage.reasoning_tokens += choices[i].facts.reasoning_tokens;
    if (const auto found = end.drafters.find("prediction"); found != end.drafters.end()) {
      usage.accepted_prediction_tokens += found->second.accepted;
      usage.rejected_prediction_tokens += found->second.drafted - found->second.accepted;
    }
  }
  return usage;
}

std::vector<std::string> NoticesOf(const ReplyFrame& frame, std::span<const Choice> choices) {
  std::vector<std::string> notices = frame.notices;
  for (const Choice& choice : choices)
    for (const std::string& notice : choice.end.completion.notices)
      if (std::find(notices.begin(), notices.end(), notice) == notices.end())
        notices.push_back(notice);
  return notices;
}

Json UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_prompt_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", usage.reasoning_tokens},
            {"accepted_prediction_tokens", usage.accepted_prediction_tokens},
            {"rejected_prediction_tokens", usage.rejected_prediction_tokens}}}};
}

void PutStatistics(Json& json, const ReplyFrame& frame, std::span<const Choice> choices) {
  const Together sum = Sum(choices);
  json["seed"] = sum.seed;
  if (auto notices = NoticesOf(frame, choices); !notices.empty())
    json["notices"] = std::move(notices);
  json["timings"] = TimingsJson(sum);
  json["speculation"] = RequestSpeculationJson(frame, sum);
}

}  // namespace foretoken::server
