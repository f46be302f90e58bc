// SPDX-License-Identifier: Apache-2.0
#include "engine/open/initial_costs.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/start_measurer.h"
#include "draft_length/table_costs.h"
#include "foretoken/tools/profile.h"

namespace foretoken::engine {
namespace {

constexpr int kRecordedDrafts = 8;  // a trace is for comparing other numbers of drafts, too

// Of the model or head that drafts under this name; 0 for a drafter without a file.
std::int64_t FileBytes(const EngineSummary& summary, std::string_view name) {
  for (const DrafterSummary& draft : summary.drafts)
    if (draft.name == name) return draft.model.file_bytes;
  return 0;
}

// What no clock says: costs by the sizes of the files.
void StartWithTable(const EngineSummary& summary, const DrafterSet& drafters,
                    draft_length::RoundCosts& fixed_costs) {
  std::vector<draft_length::TableDrafter> rows;
  for (int d = 0; d < drafters.size(); ++d)
    if (!drafters[d].instant)
      rows.push_back({.drafter = d,
                      .file_bytes = FileBytes(summary, drafters[d].name),
                      .head = drafters[d].reads_features()});
  draft_length::StartWithTable(fixed_costs, summary.target.file_bytes, rows);
}

class Learner {
 public:
  Learner(Opened& opened, const DrafterSet& drafters, Estimates& estimates, Recorder& recorder)
      : opened_(opened),
        drafters_(drafters),
        estimates_(estimates),
        recorder_(recorder),
        subject_(SubjectOf(opened)) {}

  void Measure() {
    const int drafts = std::max(subject_.drafts, recorder_.records() ? kRecordedDrafts : 0);
    const std::vector<PassCost> costs = measurer_.Passes(drafts);
    estimates_.costs.Start(costs);
    recorder_.AddCosts(costs);
    for (int d = 0; d < drafters_.size(); ++d)
      if (!drafters_[d].instant) MeasureDrafter(d);
  }

  // False where the profile does not hold here. Errors: the file's.
  Result<bool> Read(const std::string& path) {
    FORETOKEN_TRY(const Profile profile, Profile::Load(path));
    const EngineOptions& options = opened_.options;
    FORETOKEN_TRY(const ProfileModel target, ProfileModel::Of(options.model));
    const std::string why =
        profile.WhyNot(ProfileMachine::This(opened_.kernels->isa, options.threads), target);
    if (!why.empty()) {
      opened_.summary.notices.push_back("profile " + path + " is not used: " + why);
      return false;
    }
    std::vector<PassCost> costs;
    for (const ProfilePass& pass : profile.passes)
      costs.push_back({pass.rows, pass.context, {pass.us, pass.us, pass.us}});
    for (draft_length::RoundCosts* const known : {&estimates_.costs, &estimates_.fixed_costs}) {
      known->Start(costs);
      known->SeeRest(profile.rest_us);
    }
    for (int d = 0; d < drafters_.size(); ++d)
      if (!drafters_[d].instant) FORETOKEN_CHECK_OK(ReadDrafter(profile, d));
    return true;
  }

 private:
  Status ReadDrafter(const Profile& profile, int d) {
    const DrafterEntry& entry = drafters_[d];
    FORETOKEN_TRY(const ProfileModel draft,
                  ProfileModel::Of(entry.file.empty() ? opened_.options.model : entry.file));
    const ProfileDraft* const known = profile.DraftOf(entry.method, &draft);
    if (known != nullptr) estimates_.fixed_costs.StartDrafter(d, known->us, 0, 0);
    if (known != nullptr && subject_.n_sequences == 1)
      estimates_.costs.StartDrafter(d, known->us, 0, 0);
    else
      MeasureDrafter(d);
    return {};
  }

  void MeasureDrafter(int d) {
    const auto costs = measurer_.Drafts(*drafters_[d].drafter);
    if (costs.measured) estimates_.costs.StartDrafter(d, costs.one_us, costs.all_us, costs.row_us);
  }

  Opened& opened_;
  const DrafterSet& drafters_;
  Estimates& estimates_;
  Recorder& recorder_;
  const calibrate::Subject subject_;
  calibrate::StartMeasurer measurer_{subject_};
};

}  // namespace

calibrate::Subject SubjectOf(Opened& opened) {
  return {.pool = *opened.pool,
          .kernels = *opened.kernels,
          .target = *opened.target,
          .cache = *opened.cache,
          .vocabulary = opened.vocabulary,
          .context = opened.context,
          .most_positions = opened.MostPositions(),
          .n_sequences = opened.options.max_sequences,
          .drafts = *opened.options.speculative.num_speculative_tokens};
}

Status LearnInitialCosts(Opened& opened, const DrafterSet& drafters, Estimates& estimates,
                         Recorder& recorder) {
  const SpeculativeOptions& o = opened.options.speculative;
  StartWithTable(opened.summary, drafters, estimates.fixed_costs);
  Learner learner(opened, drafters, estimates, recorder);
  if (!o.profile.empty()) {
    FORETOKEN_TRY(const bool used, learner.Read(o.profile));
    if (used && !recorder.records()) return {};
  }
  const bool plans = o.lookahead == "cost-model" && !drafters.defaults().empty();
  if (plans || recorder.records()) learner.Measure();
  return {};
}

}  // namespace foretoken::engine
