// SPDX-License-Identifier: Apache-2.0
#include "server/api/stats_json.h"

#include <nlohmann/json.hpp>
#include <type_traits>

namespace foretoken::server {

namespace {

using Stats = SpeculationStats;

template <typename Member>
constexpr bool kIsTime = std::is_same_v<Member, double Stats::*>;

void PutRates(nlohmann::ordered_json& object, const Stats& stats) {
  if (const auto rate = stats.acceptance_rate()) object["acceptance_rate"] = *rate;
  if (const auto length = stats.mean_acceptance_length())
    object["mean_acceptance_length"] = *length;
}

}  // namespace

void PutCounts(nlohmann::ordered_json& object, const Stats& stats) {
  Stats::VisitFields([&](const char* name, auto member) {
    if constexpr (!kIsTime<decltype(member)>) object[name] = stats.*member;
    if constexpr (std::is_same_v<decltype(member), std::int64_t Stats::*>)
      if (member == &Stats::emitted) PutRates(object, stats);
  });
}

nlohmann::ordered_json DrafterCountsJson(const DrafterCounts& drafters) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, count] : drafters)
    json[name] = {
        {"rounds", count.rounds}, {"drafted", count.drafted}, {"accepted", count.accepted}};
  return json;
}

void PutTimedCounts(nlohmann::ordered_json& json, const Stats& stats) {
  PutCounts(json, stats);
  Stats::VisitFields([&](const char* name, auto member) {
    if constexpr (kIsTime<decltype(member)>) json[name] = stats.*member;
  });
}

}  // namespace foretoken::server
