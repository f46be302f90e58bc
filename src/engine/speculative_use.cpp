// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_use.h"

#include <algorithm>

#include "engine/impl.h"
#include "foretoken/speculative_config.h"

namespace foretoken {
namespace {

void AddName(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

}  // namespace

void SpeculativeUse::Add(const SpeculativeUse& other) {
  for (const std::string& method : other.methods) AddName(methods, method);
  for (const std::string& strategy : other.strategies) AddName(strategies, strategy);
  sampled |= other.sampled;
  sampled_drafts |= other.sampled_drafts;
  several_requests |= other.several_requests;
  learns_from_others |= other.learns_from_others;
  max_sequences = std::max(max_sequences, other.max_sequences);
}

SpeculativeUse Engine::Impl::UseFor(const Request& request) const {
  SpeculativeUse use{.methods = {},
                     .strategies = {std::string(VerifierFor(request).name())},
                     .lookahead = options_.speculative.lookahead,
                     .sampled = !request.sampling.greedy(),
                     .learns_from_others = !FollowsDrafts(request, VerifierFor(request)),
                     .max_sequences = options_.max_sequences};
  const bool sampled = !request.speculative.draft_sampling.value_or(request.sampling).greedy();
  for (const int d : DraftersFor(request)) {
    const DrafterEntry& entry = drafters_[static_cast<std::size_t>(d)];
    AddName(use.methods, entry.method);
    use.sampled_drafts |= sampled && entry.drafter->ReportsLaws();
  }
  return use;
}

SpeculativeUse Engine::Impl::UseForAny() const {
  SpeculativeUse use{.methods = {},
                     .strategies = StrategyNames(),
                     .lookahead = options_.speculative.lookahead,
                     .sampled = true,
                     .learns_from_others = true,
                     .max_sequences = options_.max_sequences};
  if (use.strategies.empty()) use.strategies.emplace_back(VerifierFor(Request()).name());
  for (const DrafterEntry& entry : drafters_) {
    AddName(use.methods, entry.method);
    use.sampled_drafts |= entry.drafter->ReportsLaws();
  }
  return use;
}

// What the request sets and nothing reads, as lines "key: why".
std::vector<std::string> Engine::Impl::NoticesOf(const Request& request) const {
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

SpeculativeUse Engine::UseFor(const Request& request) const {
  return impl_->UseFor(request);
}

SpeculativeUse Engine::UseForAny() const {
  return impl_->UseForAny();
}

}  // namespace foretoken
