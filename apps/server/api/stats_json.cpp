// SPDX-License-Identifier: Apache-2.0
#include "server/api/stats_json.h"

#include <nlohmann/json.hpp>

namespace foretoken::server {

void PutCounts(nlohmann::ordered_json& object, const SpeculationStats& stats) {
  object["rounds"] = stats.rounds;
  object["draft_rounds"] = stats.draft_rounds;
  object["drafted"] = stats.drafted;
  object["accepted"] = stats.accepted;
  object["accepted_relaxed"] = stats.accepted_relaxed;
  object["recovered"] = stats.recovered;
  object["bonus"] = stats.bonus;
  object["plain"] = stats.plain;
  object["emitted"] = stats.emitted;
  if (const auto rate = stats.acceptance_rate()) object["acceptance_rate"] = *rate;
  if (const auto length = stats.mean_acceptance_length())
    object["mean_acceptance_length"] = *length;
  object["drafted_per_position"] = stats.drafted_per_position;
  object["judged_per_position"] = stats.verified_per_position;
  object["accepted_per_position"] = stats.accepted_per_position;
  object["draft_forwards"] = stats.draft_forwards;
  object["target_forwards"] = stats.target_forwards;
  object["rolled_back"] = stats.rolled_back;
  object["k_histogram"] = stats.k_histogram;
}

nlohmann::ordered_json DrafterCountsJson(const DrafterCounts& drafters) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, count] : drafters)
    json[name] = {
        {"rounds", count.rounds}, {"drafted", count.drafted}, {"accepted", count.accepted}};
  return json;
}

void PutTimedCounts(nlohmann::ordered_json& json, const SpeculationStats& stats) {
  PutCounts(json, stats);
  json["draft_ms"] = stats.draft_ms;
  json["verify_ms"] = stats.verify_ms;
  json["overhead_ms"] = stats.overhead_ms;
  json["draft_prompt_ms"] = stats.draft_prompt_ms;
}

}  // namespace foretoken::server
