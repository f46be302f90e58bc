// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/speculation_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "foretoken/catalogue.h"
#include "foretoken/drafts.h"
#include "foretoken/speculative_config.h"

namespace foretoken {
namespace {

void AddName(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

// False: drafts are the drafter's best tokens, which have no distribution.
bool DrawsDrafts(const Request& request) {
  return !request.speculative.draft_sampling.value_or(request.sampling).greedy();
}

// Draft lengths follow the load, unless the text depends on them.
bool FollowsLoad(const SpeculativeOptions& options) {
  return FindController(options.controller)->follows_load ||
         options.num_speculative_tokens_mixed_batch;
}

}  // namespace

void SpeculativeUse::Add(const SpeculativeUse& other) {
  for (const std::string& method : other.methods) AddName(methods, method);
  for (const std::string& strategy : other.strategies) AddName(strategies, strategy);
  relaxes_thinking |= other.relaxes_thinking;
  sampled |= other.sampled;
  sampled_drafts |= other.sampled_drafts;
  several_requests |= other.several_requests;
  learns_from_others |= other.learns_from_others;
  max_sequences = std::max(max_sequences, other.max_sequences);
}

namespace engine {

std::vector<int> SpeculationRules::DraftersFor(const Request& request) const {
  if (request.drafts) return {};
  const SpeculativeParameters& s = request.speculative;
  const int k = s.num_speculative_tokens.value_or(*options_.speculative.num_speculative_tokens);
  if (!s.enabled.value_or(true) || k == 0) return {};
  auto drafters = s.method ? *drafters_.Find(*s.method) : drafters_.defaults();
  const bool any = !drafters.empty();
  // Where the drafts decide the text, it would depend on when a late network is ready.
  const verify::Verifier* const asked = AskedFor(request);
  const bool follows_drafts =
      asked != nullptr && !asked->SharesNoise() && !request.sampling.greedy();
  std::erase_if(drafters, [&](int d) {
    const draft::DrafterSpec* const spec = drafters_[d].spec;
    if (drafters_[d].late && follows_drafts && !s.method) return true;
    return spec != nullptr && (spec->joins_others || !spec->Serves(request));
  });
  // Drafters that join all others (a grammar's) draft before them, whatever the method, unless the
  // strategy reads distributions or logits, which such drafts lack.
  const bool reads_drafts =
      asked != nullptr && (asked->NeedsDistributions() || asked->NeedsLogits());
  for (int d = drafters_.size() - 1; any && !reads_drafts && d >= 0; --d)
    if (const auto* const spec = drafters_[d].spec;
        spec != nullptr && spec->joins_others && spec->Serves(request))
      drafters.insert(drafters.begin(), d);
  return drafters;
}

// The verifier that was asked for, even if temperature 0 replaces it by greedy; null if none was.
const verify::Verifier* SpeculationRules::AskedFor(const Request& request) const {
  if (verifiers_.own) return verifiers_.own.get();
  const VerifyStrategy strategy = StrategyOf(request);
  return strategy == VerifyStrategy::kAuto ? nullptr : &verifiers_.Of(strategy);
}

// A strategy that the request or the engine names decides; otherwise the kind of the drafts does.
const verify::Verifier& SpeculationRules::VerifierFor(const Request& request) const {
  if (verifiers_.synthetic) return *verifiers_.synthetic;
  if (verifiers_.own) return *verifiers_.own;
  // At temperature 0 every strategy is greedy, so results say greedy.
  if (request.sampling.greedy()) return verifiers_.Of(VerifyStrategy::kGreedy);
  if (request.drafts) return verifiers_.Of(VerifyStrategy::kSampleMatch);
  const VerifyStrategy strategy = StrategyOf(request);
  if (strategy != VerifyStrategy::kAuto) return verifiers_.Of(strategy);
  // If draft lengths follow measured time or the load, no text may depend on them (ADR 0009).
  const SpeculativeOptions& set = options_.speculative;
  const bool bent = set.acceptance_threshold != 0 || set.skip_sample_adjustment;
  // A least draft length needs a strategy that allows short drafts to be withheld.
  if ((FollowsLoad(set) || LeastDraftsOf(request) > 1) && !bent)
    return verifiers_.Of(VerifyStrategy::kSampleMatch);
  const std::vector<int> drafters = DraftersFor(request);
  const bool any_late =
      std::any_of(drafters.begin(), drafters.end(), [this](int d) { return drafters_[d].late; });
  for (const int d : drafters)
    if (drafters_[d].drafter->ReportsDistributions() && DrawsDrafts(request) && !any_late)
      return verifiers_.Of(VerifyStrategy::kResidual);
  return verifiers_.Of(VerifyStrategy::kSampleMatch);
}

// At temperature 0 relaxed is greedy, as every strategy.
const verify::Verifier* SpeculationRules::ThinkingVerifierFor(const Request& request) const {
  const bool asked = options_.speculative.use_relaxed_acceptance_for_thinking;
  if (!asked || verifiers_.one_for_all() || request.sampling.greedy() || request.drafts)
    return nullptr;
  const verify::Verifier& relaxed = verifiers_.Of(VerifyStrategy::kRelaxed);
  return &VerifierFor(request) == &relaxed ? nullptr : &relaxed;
}

std::vector<std::string> SpeculationRules::StrategyNames() const {
  std::vector<std::string> names;
  if (verifiers_.one_for_all()) return names;
  const auto reported = [this](auto what) {
    return std::any_of(
        drafters_.begin(), drafters_.end(),
        [what](const loader::DrafterEntry& entry) { return ((*entry.drafter).*what)(); });
  };
  for (const auto& verifier : verifiers_.rules) {
    if (verifier->NeedsDistributions() && !reported(&draft::Drafter::ReportsDistributions))
      continue;
    if (verifier->NeedsLogits() && !reported(&draft::Drafter::ReportsLogits)) continue;
    names.emplace_back(verifier->name());
  }
  return names;
}

// At most K: the engine's setting may be larger than the K of a request.
int SpeculationRules::LeastDraftsOf(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  const SpeculativeOptions& set = options_.speculative;
  const int most = s.num_speculative_tokens.value_or(*set.num_speculative_tokens);
  return std::max(1, std::min(most, s.min_speculative_tokens.value_or(set.min_speculative_tokens)));
}

// Whether the verifier reads the distributions that the drafts were drawn from.
bool SpeculationRules::VerifiesDistributions(const Request& request) const {
  if (!DrawsDrafts(request) || request.sampling.greedy() ||
      !VerifierFor(request).NeedsDistributions())
    return false;
  const auto drafters = DraftersFor(request);
  return std::any_of(drafters.begin(), drafters.end(),
                     [this](int d) { return drafters_[d].drafter->ReportsDistributions(); });
}

// At temperature 0 all built-in strategies are greedy. Synthetic acceptance is for measurements,
// which want the engine's controller.
bool SpeculationRules::FollowsDrafts(const Request& request,
                                     const verify::Verifier& verifier) const {
  if (ThinkingVerifierFor(request) != nullptr) return true;
  if (verifier.SharesNoise() || &verifier == verifiers_.synthetic.get()) return false;
  const bool own = &verifier == verifiers_.own.get();
  return !request.sampling.greedy() || (own && !verifier.Lossless());
}

// Without drafts no built-in strategy changes anything, but a verifier for all requests may.
bool SpeculationRules::Lossless(const verify::Verifier& verifier, bool drafts) const {
  return (!drafts && !verifiers_.one_for_all()) || verifier.Lossless();
}

std::string SpeculationRules::ControllerOf(bool drafts, bool follows_drafts) const {
  if (!drafts) return "";
  const std::string& name = options_.speculative.controller;
  return FindController(name)->follows_load && follows_drafts ? "by-text" : name;
}

// Applies the rules of the engine's own setting to the request's.
Status SpeculationRules::CheckLeastDrafts(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  const SpeculativeOptions& set = options_.speculative;
  if (LeastDraftsOf(request) > 1 && VerifiesDistributions(request))
    return InvalidField("min_speculative_tokens",
                        fmt::format("under {} a drawn draft must be verified, and "
                                    "dropping short ones would bias the text; set it to 0 or use "
                                    "sample-match",
                                    VerifierFor(request).name()));
  if (!s.min_speculative_tokens) return {};
  SpeculativeOptions asked;
  asked.strategy = StrategyOf(request);
  asked.num_speculative_tokens = s.num_speculative_tokens.value_or(*set.num_speculative_tokens);
  asked.min_speculative_tokens = *s.min_speculative_tokens;
  asked.synthetic_acceptance_rate = set.synthetic_acceptance_rate;
  auto config = SpeculativeConfig::Create(asked);
  return config ? Status() : Fail(std::move(config).error());
}

// Given drafts have no distributions, and tokens must not depend on them.
Status SpeculationRules::CheckGivenDrafts(const Request& request) const {
  if (verifiers_.one_for_all())
    return InvalidField("drafts",
                        fmt::format("'{}' verifies every request of this engine, and these need "
                                    "sample-match; open one without it",
                                    VerifierFor(request).name()));
  const VerifyStrategy strategy = request.speculative.strategy.value_or(VerifyStrategy::kAuto);
  if (strategy != VerifyStrategy::kAuto && strategy != VerifyStrategy::kGreedy &&
      strategy != VerifyStrategy::kSampleMatch)
    return InvalidField(
        "verify",
        fmt::format("'{}' verifies no drafts that are given; leave it out", Name(strategy)));
  return {};
}

Status SpeculationRules::Check(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  if (request.drafts) FORETOKEN_CHECK_OK(CheckGivenDrafts(request));
  if (s.method) {
    if (auto drafters = drafters_.Find(*s.method); !drafters)
      return Fail(std::move(drafters).error());
  }
  const int k = s.num_speculative_tokens.value_or(0);
  if (k < 0 || k > kMaxDraft)
    return InvalidField("num_speculative_tokens",
                        fmt::format("{} is out of range; use 0 to {}", k, kMaxDraft));
  const float p_min = s.draft_p_min.value_or(0);
  if (!(p_min >= 0 && p_min <= 1))
    return InvalidField("draft_p_min", fmt::format("{} is out of range; use 0 to 1", p_min));
  FORETOKEN_CHECK_OK(CheckLeastDrafts(request));
  constexpr VerifyStrategy kAuto = VerifyStrategy::kAuto;
  const VerifyStrategy strategy = StrategyOf(request);
  if (verifiers_.one_for_all() && s.strategy.value_or(kAuto) != kAuto)
    return InvalidField("verify",
                        fmt::format("'{}' verifies every request of this engine; leave '{}' out",
                                    VerifierFor(request).name(), Name(strategy)));
  if (strategy == VerifyStrategy::kGreedy && !request.sampling.greedy())
    return InvalidField(
        "verify",
        fmt::format("'greedy' with temperature {} would give greedy text; use temperature "
                    "0, or residual or sample-match",
                    request.sampling.temperature));
  return CheckDrafters(request);
}

// Checks that the drafters report what the requested verifier reads.
Status SpeculationRules::CheckDrafters(const Request& request) const {
  const verify::Verifier* const verifier = AskedFor(request);
  if (verifiers_.synthetic || verifier == nullptr) return {};
  for (const int d : DraftersFor(request)) {
    const loader::DrafterEntry& entry = drafters_[d];
    if (verifier->NeedsDistributions() && !entry.drafter->ReportsDistributions())
      return InvalidField(
          "verify",
          fmt::format("'{}' needs a drafter that reports its distributions, and {} reports none; "
                      "use sample-match",
                      verifier->name(), entry.name));
    if (verifier->NeedsLogits() && !entry.drafter->ReportsLogits())
      return InvalidField(
          "verify",
          fmt::format("'{}' needs a drafter that reports its logits, and {} reports none; "
                      "use sample-match",
                      verifier->name(), entry.name));
  }
  return {};
}

SpeculativeUse SpeculationRules::UseFor(const Request& request) const {
  const bool follows_drafts = FollowsDrafts(request, VerifierFor(request));
  SpeculativeUse use{.methods = {},
                     .strategies = {std::string(VerifierFor(request).name())},
                     .controller = ControllerOf(true, follows_drafts),
                     .relaxes_thinking = ThinkingVerifierFor(request) != nullptr,
                     .sampled = !request.sampling.greedy(),
                     .learns_from_others = !follows_drafts,
                     .max_sequences = options_.max_sequences};
  if (use.relaxes_thinking) AddName(use.strategies, VerifyStrategy::kRelaxed.name());
  for (const int d : DraftersFor(request)) {
    const loader::DrafterEntry& entry = drafters_[d];
    AddName(use.methods, entry.method);
    use.sampled_drafts |= DrawsDrafts(request) && entry.drafter->ReportsDistributions();
  }
  return use;
}

SpeculativeUse SpeculationRules::UseForAny() const {
  SpeculativeUse use{.methods = {},
                     .strategies = StrategyNames(),
                     .controller = options_.speculative.controller,
                     .relaxes_thinking = options_.speculative.use_relaxed_acceptance_for_thinking &&
                                         !verifiers_.one_for_all(),
                     .sampled = true,
                     .learns_from_others = true,
                     .max_sequences = options_.max_sequences};
  if (use.strategies.empty()) use.strategies.emplace_back(VerifierFor(Request()).name());
  for (const loader::DrafterEntry& entry : drafters_) {
    AddName(use.methods, entry.method);
    use.sampled_drafts |= entry.drafter->ReportsDistributions();
  }
  return use;
}

std::vector<std::string> SpeculationRules::NoticesOf(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  SpeculativeOptions set;
  std::vector<std::string_view> keys;
  if (s.method) set.method = *s.method, keys.push_back("speculative_method");
  if (s.strategy) set.strategy = *s.strategy, keys.push_back("rejection_sampling_strategy");
  if (s.num_speculative_tokens) {
    set.num_speculative_tokens = s.num_speculative_tokens;
    keys.push_back("num_speculative_tokens");
  }
  if (s.min_speculative_tokens) {
    set.min_speculative_tokens = *s.min_speculative_tokens;
    keys.push_back("min_speculative_tokens");
  }
  if (s.draft_p_min) set.draft_p_min = *s.draft_p_min, keys.push_back("draft_p_min");
  std::vector<std::string> notices;
  if (keys.empty() && request.prediction.empty()) return notices;
  const SpeculativeUse use = UseFor(request);
  for (const std::string_view key : keys)
    if (const std::string why = FindSpeculativeKey(key)->idle(set, use); !why.empty())
      notices.push_back(std::string(key) + ": " + why);
  if (!request.prediction.empty())
    if (const std::string why = WhyNoPrediction(use); !why.empty())
      notices.push_back("prediction: " + why);
  return notices;
}

}  // namespace engine
}  // namespace foretoken
