// SPDX-License-Identifier: Apache-2.0
#include "server/api/reply_statistics.h"

#include <algorithm>

#include "server/api/object_text.h"
#include "server/api/stats_json.h"

namespace foretoken::server {
namespace {

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

void PutTimes(Json& json, const std::string& name, int n, double ms) {
  json[name + "_n"] = n;
  json[name + "_ms"] = ms;
  if (n > 0) json[name + "_per_token_ms"] = ms / n;
  if (n > 0 && ms > 0) json[name + "_per_second"] = 1000.0 * n / ms;
}

Json RequestSpeculationJson(const ReplyFrame& frame, const Together& sum) {
  Json json = {{"method", frame.method},
               {"strategy", sum.strategy},
               {"lossless", sum.lossless},
               {"lookahead", sum.controller.empty() ? frame.engine->controller : sum.controller},
               {"num_speculative_tokens", frame.num_speculative_tokens}};
  if (sum.plain_ms > 0 && sum.actual_ms > 0)
    json["estimated_speedup"] = sum.plain_ms / sum.actual_ms;
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

void PutTimings(Json& json, const Timings& timings, const SpeculationStats& speculation) {
  PutTimes(json, "prompt", timings.prompt_tokens, timings.prompt_ms);
  PutTimes(json, "predicted", timings.decoded_tokens, timings.decode_ms);
  json["draft_n"] = speculation.drafted;
  json["draft_n_accepted"] = speculation.accepted;
}

void PutStatistics(Json& json, const ReplyFrame& frame, std::span<const Choice> choices) {
  const Together sum = Sum(choices);
  json["seed"] = sum.seed;
  if (auto notices = NoticesOf(frame, choices); !notices.empty())
    json["notices"] = std::move(notices);
  Json& timings = json["timings"];
  PutTimings(timings, sum.timings, sum.speculation);
  timings["queue_ms"] = sum.queue_ms;
  timings["first_token_ms"] = sum.first_token_ms;
  json["speculation"] = RequestSpeculationJson(frame, sum);
}

}  // namespace foretoken::server
