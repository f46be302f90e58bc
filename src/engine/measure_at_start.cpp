// SPDX-License-Identifier: Apache-2.0
// What passes and drafts cost, for the cost model: read from a profile, or measured quickly while
// an engine is opened.
#include <algorithm>

#include "calibrate/draft_meter.h"
#include "calibrate/pass_meter.h"
#include "draft_length/table_costs.h"
#include "engine/impl.h"
#include "foretoken/tools/profile.h"

namespace foretoken {
namespace {

constexpr double kBudgetUs = 350'000;       // of all passes
constexpr double kDraftBudgetUs = 100'000;  // of each drafter
constexpr int kRepeats = 4, kDrafts = 3;
constexpr int kMostRepeats = 24;            // of passes, as long as all take no longer than this:
constexpr double kSoonUs = 40'000;          // one moment says little of a machine that others use
constexpr int kPrompt = 24, kPrompts = 64;  // tokens: of one sequence; of several together
constexpr int kFarContext = 2048;
constexpr int kRecordedDrafts = 8;

}  // namespace

class Engine::Impl::StartMeasurer {
 public:
  explicit StartMeasurer(Impl& impl) : impl_(impl) {}

  void Measure() {
    MeasurePasses();
    MeasureDrafters();
  }

  // What no clock says: costs by the sizes of the files.
  void ReadTable() {
    std::vector<draft_length::TableDrafter> drafters;
    for (int d = 0; d < static_cast<int>(impl_.drafters_.size()); ++d) {
      const DrafterEntry& entry = impl_.drafters_[static_cast<std::size_t>(d)];
      if (entry.instant) continue;
      drafters.push_back(
          {.drafter = d, .file_bytes = FileBytes(entry.name), .head = entry.reads_features()});
    }
    draft_length::StartWithTable(*impl_.fixed_costs_, impl_.summary_.target.file_bytes, drafters);
  }

  // Of the model or head that drafts under this name; 0 for a drafter without a file.
  std::int64_t FileBytes(std::string_view name) const {
    for (const DrafterSummary& draft : impl_.summary_.drafts)
      if (draft.name == name) return draft.model.file_bytes;
    return 0;
  }

  // False where the profile does not hold here. Errors: the file's.
  Result<bool> Read(const std::string& path) {
    FORETOKEN_TRY(const Profile profile, Profile::Load(path));
    const EngineOptions& options = impl_.options_;
    FORETOKEN_TRY(const ProfileModel target, ProfileModel::Of(options.model));
    const std::string why =
        profile.WhyNot(ProfileMachine::This(impl_.kernels_->isa, options.threads), target);
    if (!why.empty()) {
      impl_.summary_.notices.push_back("profile " + path + " is not used: " + why);
      return false;
    }
    std::vector<PassCost> costs;
    for (const ProfilePass& pass : profile.passes)
      costs.push_back({pass.rows, pass.context, {pass.us, pass.us, pass.us}});
    impl_.costs_->Start(costs);
    impl_.costs_->SeeRest(profile.rest_us);
    impl_.fixed_costs_->Start(costs);
    impl_.fixed_costs_->SeeRest(profile.rest_us);
    for (int d = 0; d < static_cast<int>(impl_.drafters_.size()); ++d) {
      const DrafterEntry& entry = impl_.drafters_[static_cast<std::size_t>(d)];
      if (entry.instant) continue;
      FORETOKEN_TRY(const ProfileModel draft,
                    ProfileModel::Of(entry.file.empty() ? options.model : entry.file));
      const ProfileDraft* known = profile.DraftOf(entry.method, &draft);
      if (known != nullptr) impl_.fixed_costs_->StartDrafter(d, known->us, 0, 0);
      if (known != nullptr && n_sequences() == 1)
        impl_.costs_->StartDrafter(d, known->us, 0, 0);
      else
        MeasureDrafter(d);
    }
    return true;
  }

 private:
  void MeasureDrafters() {
    for (int d = 0; d < static_cast<int>(impl_.drafters_.size()); ++d)
      if (!impl_.drafters_[static_cast<std::size_t>(d)].instant) MeasureDrafter(d);
  }

  using Clock = std::chrono::steady_clock;
  double SpentUs() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
  }
  bool Affordable(double us) const { return SpentUs() + us < kBudgetUs; }

  // In turn, so that a slow moment hits all alike; of each the quickest counts. One row and the
  // widest draft come first, in case there is no time for more. Where several requests may run a
  // pass has as many rows, and drafts.
  void MeasurePasses() {
    // A record is for comparing other numbers of drafts too.
    const int drafts = std::max(*impl_.options_.speculative.num_speculative_tokens,
                                impl_.recorder_ ? kRecordedDrafts : 0);
    const int most = std::min(impl_.target_->info().max_logit_rows, impl_.MostPositions()),
              widest = std::min(1 + drafts, most),
              together = n_sequences() > 1 ? 2 * n_sequences() : 0;
    std::vector<PassCost> costs;
    for (const int rows : {1, widest, 3, 5, 2, 9, 17, 33})
      if (rows <= std::max(widest, std::min(together + 1, most)) &&
          std::none_of(costs.begin(), costs.end(), [&](auto& c) { return c.rows == rows; }))
        costs.push_back({rows, 0, {}});
    const int far = std::min(kFarContext, impl_.MostPositions() - widest);
    if (far >= 512) costs.push_back({widest, far, {}});
    calibrate::PassMeter passes(*impl_.target_, *impl_.cache_, std::max(0, far));
    double row_us = passes.Microseconds(1, 0, true);  // fills the caches
    for (int repeat = 0; repeat < kMostRepeats && (repeat < kRepeats || SpentUs() < kSoonUs);
         ++repeat)
      for (PassCost& cost : costs) {
        // A pass of several rows may take as many times as long.
        const double expected =
            cost.us.median > 0 ? cost.us.median : row_us * (1 + 0.25 * (cost.rows - 1));
        if (!Affordable(expected)) continue;
        const double us = passes.Microseconds(cost.rows, cost.context, true);
        cost.us.median = cost.us.median > 0 ? std::min(us, cost.us.median) : us;
        if (cost.rows == 1) row_us = cost.us.median;
      }
    std::erase_if(costs, [](const PassCost& cost) { return cost.us.median <= 0; });
    if (costs.empty()) costs.push_back({1, 0, {row_us, row_us, row_us}});
    impl_.costs_->Start(costs);
    if (impl_.recorder_) impl_.recorder_->AddCosts(costs);
  }

  void MeasureDrafter(int index) {
    draft::Drafter& drafter = *impl_.drafters_[static_cast<std::size_t>(index)].drafter;
    const int drafts = std::min(kDrafts, *impl_.options_.speculative.num_speculative_tokens);
    const int prompt = n_sequences() == 1 ? kPrompt : std::max(2, kPrompts / n_sequences());
    if (drafts < 1 || impl_.context_size_ < kPrompt + 2 * kRepeats + kDrafts + 3) return;
    const calibrate::DraftSetting setting = {
        .n_sequences = n_sequences(),
        .context_size = impl_.context_size_,
        .drafts = drafts,
        .features_width = std::int64_t{drafter.Needs().parts()} * impl_.target_->info().dim,
        .sampling = {}};
    calibrate::DraftMeter meter(drafter, setting, prompt, 2 * kRepeats + 1);
    meter.Microseconds(n_sequences());  // reads the contexts
    const double one_us = DraftUs(meter, 1, drafts),
                 all_us = n_sequences() > 1 ? DraftUs(meter, n_sequences(), drafts) : 0;
    impl_.costs_->StartDrafter(index, one_us, all_us, meter.RowMicroseconds());
  }

  // The quickest of several; 0: not known.
  static double DraftUs(calibrate::DraftMeter& meter, int sequences, int drafts) {
    double least = 0, spent_us = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double us = meter.Microseconds(sequences);
      if (us > 0) least = least > 0 ? std::min(least, us) : us;
      spent_us += us * drafts;
      if (spent_us > kDraftBudgetUs / 2) break;
    }
    return least;
  }

  int n_sequences() const { return static_cast<int>(impl_.sequences_.size()); }

  Impl& impl_;
  const Clock::time_point begin_ = Clock::now();
};

Status Engine::Impl::LearnCostsAtStart() {
  const SpeculativeOptions& o = options_.speculative;
  StartMeasurer measurer(*this);
  measurer.ReadTable();
  if (!o.profile.empty()) {
    FORETOKEN_TRY(const bool used, measurer.Read(o.profile));
    if (used && !recorder_) return {};
  }
  const bool plans = o.lookahead == "cost-model" && !default_drafters_.empty();
  if (plans || recorder_) measurer.Measure();
  return {};
}

}  // namespace foretoken
