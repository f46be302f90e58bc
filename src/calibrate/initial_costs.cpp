// SPDX-License-Identifier: Apache-2.0
#include "calibrate/initial_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/own_folder.h"
#include "base/hash.h"
#include "calibrate/start_measurer.h"
#include "draft_length/table_costs.h"
#include "foretoken/tools/profile.h"
#include "loader/drafts/own_copy.h"

namespace foretoken::calibrate {
namespace {

constexpr int kRecordedDrafts = 8;  // a trace is also for comparing other numbers of drafts

draft_length::ExpertShape ShapeOf(const model::ExpertsInfo& experts) {
  return {.layers = experts.n_layers, .n = experts.n_experts, .used = experts.n_used};
}

// "" where the drafter is no copy of the target.
std::string TypesOfCopy(const EngineOptions& options, const loader::DrafterEntry& entry) {
  const bool is_copy = entry.spec != nullptr && entry.spec->info.copies_target;
  return is_copy ? loader::SelfDraftOf(options.speculative) : "";
}

// Estimates costs from the sizes of the files, without a clock.
void StartWithTable(const CostSources& sources, draft_length::RoundCosts& fixed_costs) {
  const model::RunnerInfo& target = sources.subject.target.info();
  const model::ExpertsInfo& experts = target.experts;
  const std::int64_t bytes =
      experts.n_layers == 0 ? sources.target_bytes
                            : target.ReadBytes(std::int64_t{experts.n_layers} * experts.n_used);
  std::vector<draft_length::TableDrafter> rows;
  for (int d = 0; d < sources.drafters.size(); ++d)
    if (const loader::DrafterEntry& entry = sources.drafters[d]; !entry.instant)
      rows.push_back(
          {.drafter = d,
           .bytes = entry.pass_share > 0
                        ? static_cast<std::int64_t>(entry.pass_share * static_cast<double>(bytes))
                        : entry.file_bytes,
           .head = entry.reads_features() && !entry.drafter->DraftsAtOnce()});
  draft_length::StartWithTable(fixed_costs, bytes, rows,
                               {.shape = ShapeOf(experts), .expert_bytes = experts.expert_bytes});
}

class Learner {
 public:
  Learner(const CostSources& sources, const CostsToLearn& known)
      : sources_(sources), known_(known), measurer_(sources.subject), kept_(sources.kept) {}

  std::vector<PassCost> Measure() {
    const int drafts = std::max(sources_.subject.drafts, sources_.records ? kRecordedDrafts : 0);
    std::vector<PassCost> costs = measurer_.Passes(drafts);
    slower_ = SlowerThan(kept_, costs);
    for (PassCost& cost : costs)
      for (const auto& pass : kept_.passes)
        if (cost.context == 0 && cost.rows == pass.rows)
          cost.us.median = Believed(cost.us.median, pass.us, slower_);
    known_.costs.Start(costs);
    known_.costs.StartExperts(ShapeOf(sources_.subject.target.info().experts),
                              measurer_.expert_us(), costs);
    for (int d = 0; d < sources_.drafters.size(); ++d)
      if (!sources_.drafters[d].instant) MeasureDrafter(d);
    return costs;
  }

  // Takes what was kept in place of measurements: the machine's speed alone may be another one today, and the first
  // passes of a text tell it. False: it is not all that there is to know.
  bool Recall() {
    if (!sources_.kept_agree || !Covers()) return false;
    known_.costs.StartWith(kept_);
    for (int d = 0; d < sources_.drafters.size(); ++d)
      if (const int like = sources_.drafters[d].costs_like; like >= 0)
        known_.costs.StartDrafterLike(d, like);
    return true;
  }

  // False: the profile does not fit this machine or these models. Errors: the file's.
  Result<bool> Read(const std::string& path) {
    FORETOKEN_TRY(const Profile profile, Profile::Load(path));
    const EngineOptions& options = sources_.options;
    FORETOKEN_TRY(const ProfileModel target, ProfileModel::Of(options.model));
    const std::string why =
        profile.WhyNot(ProfileMachine::This(sources_.subject.kernels.isa, options.threads), target);
    if (!why.empty()) {
      known_.notices.push_back("profile " + path + " is not used: " + why);
      return false;
    }
    std::vector<PassCost> costs;
    for (const ProfilePass& pass : profile.passes)
      costs.push_back({pass.rows, pass.context, {pass.us, pass.us, pass.us}});
    for (draft_length::RoundCosts* const known : {&known_.costs, &known_.fixed_costs}) {
      known->Start(costs);
      known->RecordRest(profile.rest_us);
    }
    for (int d = 0; d < sources_.drafters.size(); ++d)
      if (!sources_.drafters[d].instant) FORETOKEN_CHECK_OK(ReadDrafter(profile, d));
    return true;
  }

 private:
  // Passes of one row and of the widest round of one sequence, and each drafter. The experts of a mixture are not
  // among what is kept.
  bool Covers() const {
    const Subject& subject = sources_.subject;
    const int widest = std::min({1 + subject.drafts, subject.MaxRows(), subject.most_positions});
    const auto& passes = kept_.passes;
    if (subject.target.info().experts.n_layers != 0 || passes.empty()) return false;
    if (passes.front().rows != 1 || passes.back().rows < widest) return false;
    if (std::adjacent_find(passes.begin(), passes.end(),
                           [](auto& a, auto& b) { return a.rows >= b.rows; }) != passes.end())
      return false;
    for (int d = 0; d < sources_.drafters.size(); ++d)
      if (const loader::DrafterEntry& entry = sources_.drafters[d];
          !entry.instant && entry.costs_like < 0 && !(KeptOf(d).one_us > 0))
        return false;
    return true;
  }

  draft_length::LearnedCosts::Drafts KeptOf(int d) const {
    const auto i = static_cast<std::size_t>(d);
    return i < kept_.drafts.size() ? kept_.drafts[i] : draft_length::LearnedCosts::Drafts();
  }

  Status ReadDrafter(const Profile& profile, int d) {
    const loader::DrafterEntry& entry = sources_.drafters[d];
    FORETOKEN_TRY(const ProfileModel draft,
                  ProfileModel::Of(entry.file.empty() ? sources_.options.model : entry.file));
    const ProfileDraft* const known =
        profile.DraftOf(entry.method, &draft, TypesOfCopy(sources_.options, entry));
    if (known != nullptr) known_.fixed_costs.StartDrafter(d, known->us, 0, 0);
    if (known != nullptr && sources_.subject.n_sequences == 1)
      known_.costs.StartDrafter(d, known->us, 0, 0);
    else
      MeasureDrafter(d);
    return {};
  }

  void MeasureDrafter(int d) {
    if (const int like = sources_.drafters[d].costs_like; like >= 0)
      return known_.costs.StartDrafterLike(d, like);
    const loader::DrafterEntry& entry = sources_.drafters[d];
    StartMeasurer::DraftCosts measured;
    if (!entry.late) measured = measurer_.Drafts(*entry.drafter);
    const draft_length::LearnedCosts::Drafts kept = KeptOf(d);
    const double first_us =
                     Believed(measured.first * measured.one_us, kept.first * kept.one_us, slower_),
                 one_us = Believed(measured.one_us, kept.one_us, slower_);
    if (one_us == 0 && !measured.measured) return Estimate(d);
    known_.costs.StartDrafter(d, one_us, Believed(measured.all_us, kept.all_us, slower_),
                              Believed(measured.row_us, kept.row_us, slower_),
                              one_us > 0 ? first_us / one_us : 1);
  }

  // A copy that is made later costs its share of bytes. It is not measured, because asking it for a draft would
  // begin its making before the first prompt.
  void Estimate(int d) {
    const loader::DrafterEntry& entry = sources_.drafters[d];
    if (!entry.late || !known_.costs.known()) return;
    known_.costs.StartDrafter(d, entry.pass_share * known_.costs.PassUs(1, 0), 0, 0);
  }

  const CostSources& sources_;
  const CostsToLearn& known_;
  StartMeasurer measurer_;
  const draft_length::LearnedCosts& kept_;
  double slower_ = 0;  // now than then; 0: nothing was kept
};

}  // namespace

bool PlansWithCosts(const SpeculativeOptions& options, const loader::DrafterSet& drafters) {
  return options.controller == "cost-model" && !drafters.defaults().empty();
}

CostFile CostFileFor(const EngineOptions& options, const std::string& isa,
                     const loader::DrafterSet& drafters) {
  const std::string folder =
      options.repack_cache == "auto" ? UserCacheFolder() : options.repack_cache;
  if (folder.empty() || options.repack_cache == "off" || options.ranks != nullptr) return {};
  const ProfileMachine machine = ProfileMachine::This(isa, options.threads);
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}", machine.cpu, machine.isa, machine.threads,
                                options.max_sequences, static_cast<int>(options.cache_type_k),
                                static_cast<int>(options.cache_type_v));
  const auto add = [&key](const std::string& file) {
    const auto model = ProfileModel::Of(file);
    if (model) key += fmt::format("|{}:{:016x}", model->bytes, model->hash);
    return model.has_value();
  };
  const SpeculativeOptions& speculative = options.speculative;
  key += fmt::format("|{}|{}|{}|{}", speculative.strategy.name(),
                     speculative.synthetic_acceptance_rate.value_or(-1), speculative.draft_window,
                     speculative.draft_best_blocks);
  if (!add(options.model)) return {};
  for (int d = 0; d < drafters.size(); ++d) {
    key += "|" + drafters[d].full_name;
    if (!drafters[d].file.empty() && !add(drafters[d].file)) return {};
    if (const std::string types = TypesOfCopy(options, drafters[d]); !types.empty())
      key += "|" + types;
  }
  return CostFile(folder, HashOf(key));
}

Result<std::vector<PassCost>> LearnInitialCosts(const CostSources& sources,
                                                const CostsToLearn& known) {
  const SpeculativeOptions& o = sources.options.speculative;
  for (int d = 0; d < sources.drafters.size(); ++d)
    if (sources.drafters[d].drafter->DraftsAtOnce())
      known.costs.DraftsAtOnce(d), known.fixed_costs.DraftsAtOnce(d);
  StartWithTable(sources, known.fixed_costs);
  Learner learner(sources, known);
  bool read = false;
  if (!o.profile.empty()) {
    FORETOKEN_TRY(read, learner.Read(o.profile));
  }
  const bool plans = PlansWithCosts(o, sources.drafters) && !read;
  if (sources.records || (plans && !learner.Recall())) return learner.Measure();
  return std::vector<PassCost>();
}

}  // namespace foretoken::calibrate
