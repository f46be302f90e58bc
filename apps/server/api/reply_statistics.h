// SPDX-License-Identifier: Apache-2.0
// server/api/reply_statistics.h: what the choices of a reply cost and did together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "server/api/reply_frame.h"

namespace foretoken::server {

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_prompt_tokens = 0, reasoning_tokens = 0;
  std::int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};
// prompts: choices of one prompt are adjacent, n each; a prompt counts once.
Usage UsageOf(std::span<const Choice> choices, int n);

// The notices of the request's fields, then those of the engine, each once.
std::vector<std::string> NoticesOf(const ReplyFrame& frame, std::span<const Choice> choices);
// OpenAI's object.
Json UsageJson(const Usage& usage);

// Adds times and counts of drafts by llama.cpp's names: "prompt_n", "predicted_ms", "draft_n".
void PutTimings(Json& json, const Timings& timings, const SpeculationStats& speculation);
// The members `seed`, `notices`, `timings` and `speculation`.
void PutStatistics(Json& json, const ReplyFrame& frame, std::span<const Choice> choices);

}  // namespace foretoken::server
