// SPDX-License-Identifier: Apache-2.0
#include "cli/json_objects.h"

#include "cli/cluster/cluster_report.h"

namespace foretoken::cli {
namespace {

Json RanksJson(const ClusterFacts& facts) {
  Json ranks = Json::array();
  for (const RankFacts& rank : facts.ranks)
    ranks.push_back({{"rank", ranks.size()},
                     {"host", rank.host},
                     {"cpu", rank.cpu},
                     {"isa", rank.isa},
                     {"threads", rank.threads},
                     {"memory_bytes", rank.memory_bytes},
                     {"available_bytes", rank.available_bytes},
                     {"memory_gb_per_s", rank.memory_gb_per_s},
                     {"weights_gb_per_s", rank.weights_gb_per_s},
                     {"share", rank.share}});
  return ranks;
}

Json GathersJson(const ClusterFacts& facts) {
  Json gathers = Json::array();
  for (const GatherCost& cost : facts.gathers)
    gathers.push_back({{"bytes", cost.bytes},
                       {"us", cost.us.median},
                       {"us_least", cost.us.least},
                       {"us_most", cost.us.most},
                       {"gbit_per_s", cost.gbit_per_s(facts.ranks.size())}});
  return gathers;
}

Json ClusterModelJson(const ClusterModel& model) {
  const PairEstimate& e = model.estimate;
  Json passes = Json::object(), speeds = Json::array();
  for (const auto& [rows, us] : e.prices.pass) passes[std::to_string(rows)] = us;
  for (const PredictedSpeed& speed : model.speeds)
    speeds.push_back({{"ranks", speed.ranks},
                      {"measured", &speed == &model.speeds.back()},
                      {"plain", speed.plain},
                      {"with_drafts", speed.drafting},
                      {"k", speed.k}});
  return {{"path", model.path},
          {"method", model.method},
          {"pass_us", std::move(passes)},
          {"pass_gathers", model.traffic.gathers},
          {"pass_gather_bytes", model.traffic.bytes},
          {"pass_gather_us", model.gather_us},
          {"begin_us", e.prices.begin},
          {"draft_us", e.prices.draft},
          {"rest_us", e.prices.rest},
          {"plain_us", e.prices.plain},
          {"drafted_share", e.shares.drafted},
          {"gained_share", e.shares.gained},
          {"tokens_per_second", std::move(speeds)}};
}

}  // namespace

std::string ClusterJson(const ClusterCheck& check) {
  Json json = {{"ranks", RanksJson(check.facts)}, {"gathers", GathersJson(check.facts)}};
  json["model"] = check.model ? ClusterModelJson(*check.model) : Json(nullptr);
  return JsonLine(json);
}

}  // namespace foretoken::cli
