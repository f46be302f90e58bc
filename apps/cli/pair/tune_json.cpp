// SPDX-License-Identifier: Apache-2.0
#include "cli/json_objects.h"
#include "cli/pair/tune_trials.h"

namespace foretoken::cli {
namespace {

Json SpreadJson(const Spread& s) {
  return {{"median", s.median}, {"min", s.least}, {"max", s.most}};
}

Json DraftersJson(const Tuning& tuning) {
  Json list = Json::array();
  for (const TunedDrafter& drafter : tuning.drafters)
    list.push_back({{"method", drafter.method},
                    {"draft_model", drafter.file},
                    {"self_draft", drafter.self_draft},
                    {"draft_us", drafter.estimate.prices.draft},
                    {"drafted", drafter.estimate.stats.drafted},
                    {"accepted", drafter.estimate.stats.accepted},
                    {"survival", drafter.estimate.survival},
                    {"expected_k", drafter.estimate.best.k},
                    {"expected_speedup", drafter.estimate.best.speedup}});
  return list;
}

Json TrialJson(const Tuning& tuning, const TuneTrial& trial) {
  const TunedDrafter& drafter = tuning.drafters[trial.drafter];
  return {{"method", drafter.method},
          {"draft_model", drafter.file},
          {"self_draft", drafter.self_draft},
          {"lookahead", trial.controller},
          {"k", trial.k},
          {"tokens_per_second", SpreadJson(trial.tokens_per_second())},
          {"speedup", SpreadJson(trial.speedup())}};
}

}  // namespace

std::string TuningJson(const Tuning& tuning, const Profile& profile, const std::string& path) {
  Json json = {{"profile_path", path},
               {"profile", JsonOrNull(profile.ToText())},
               {"plain_tokens_per_second", SpreadJson(tuning.plain_tokens_per_second)},
               {"drafters", DraftersJson(tuning)},
               {"trials", Json::array()},
               {"notices", tuning.notices}};
  for (const TuneTrial& trial : tuning.trials) json["trials"].push_back(TrialJson(tuning, trial));
  json["recommended"] = tuning.recommended ? TrialJson(tuning, *tuning.recommended) : Json(nullptr);
  return JsonLine(json);
}

}  // namespace foretoken::cli
