// SPDX-License-Identifier: Apache-2.0
#include "server/api/stats_json.h"

#include <type_traits>

#include "base/json/json.h"

namespace foretoken::server {

namespace {

using Stats = SpeculationStats;

template <typename Member>
constexpr bool kIsTime = std::is_same_v<Member, double Stats::*>;

// times: whether the object gets the times, too.
void PutStats(Json& object, const Stats& stats, bool times) {
  Stats::VisitFields([&](const char* name, auto member) {
    if constexpr (std::is_member_function_pointer_v<decltype(member)>) {
      if (const auto rate = (stats.*member)()) object[name] = *rate;
    } else if (times || !kIsTime<decltype(member)>) {
      object[name] = stats.*member;
    }
  });
}

}  // namespace

void PutCounts(Json& object, const Stats& stats) {
  PutStats(object, stats, false);
}

void PutTimedCounts(Json& object, const Stats& stats) {
  PutStats(object, stats, true);
}

std::string NotationOfStats() {
  std::string fields;
  Stats::VisitFields([&](const char* name, auto member) {
    using Member = decltype(member);
    constexpr bool kIsRate = std::is_member_function_pointer_v<Member>;
    fields.append(fields.empty() ? "" : ", ").append(name).append(kIsRate ? "?: " : ": ");
    fields += kIsRate || kIsTime<Member>                      ? "number"
              : std::is_same_v<Member, std::int64_t Stats::*> ? "integer"
                                                              : "[integer]";
  });
  return fields;
}

Json DrafterCountsJson(const DrafterCounts& drafters) {
  auto json = Json::object();
  for (const auto& [name, count] : drafters)
    json[name] = {
        {"rounds", count.rounds}, {"drafted", count.drafted}, {"accepted", count.accepted}};
  return json;
}

}  // namespace foretoken::server
