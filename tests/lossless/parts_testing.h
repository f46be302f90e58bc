// SPDX-License-Identifier: Apache-2.0
// lossless/parts_testing.h: a tiny pair and requests for the tests of the public parts.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "foretoken/scorer.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/verifier.h"

namespace foretoken {

struct TinyPair {
  std::string target, draft;
};
inline const fixtures::TinyModelOptions kPairTarget{.seed = 51, .context_length = 96};
inline const std::string& PairFolder() {
  static const std::string folder = fixtures::TemporaryFolder();
  return folder;
}
inline const TinyPair& Pair() {
  static const TinyPair pair = [] {
    const std::string& folder = PairFolder();
    fixtures::TinyModelOptions options = kPairTarget;
    TinyPair made;
    made.target = fixtures::WriteTinyModel(folder, options);
    options.noise = 0.1;
    made.draft = fixtures::WriteTinyModel(folder, options);
    return made;
  }();
  return pair;
}

inline EngineOptions PairOptions(int max_sequences = 1) {
  EngineOptions options;
  options.model = Pair().target;
  options.draft_model = Pair().draft;
  options.speculative.controller = "fixed";
  options.max_sequences = max_sequences;
  options.threads = 1;
  return options;
}
// Without the draft model.
inline EngineOptions TargetOptions(int max_sequences = 1) {
  EngineOptions options = PairOptions(max_sequences);
  options.draft_model.clear();
  return options;
}
// With the draft model where this method reads it.
inline EngineOptions OptionsOfMethod(const std::string& method, int max_sequences = 1) {
  const bool reads = method == "standalone" || method == "portfolio";
  EngineOptions options = reads ? PairOptions(max_sequences) : TargetOptions(max_sequences);
  options.speculative.method = method;
  return options;
}
inline EngineOptions OptionsBy(VerifyStrategy strategy, int max_sequences = 1) {
  EngineOptions options = PairOptions(max_sequences);
  options.speculative.strategy = strategy;
  return options;
}
// kAuto, and all of the registry.
inline std::vector<VerifyStrategy> EveryStrategy() {
  std::vector<VerifyStrategy> strategies = {VerifyStrategy::kAuto};
  for (const StrategyInfo* const row : AllStrategies())
    strategies.push_back(*VerifyStrategy::Named(row->name));
  return strategies;
}
// With a head of the pair's target.
inline EngineOptions HeadOptions(fixtures::TinyHeadOptions head) {
  EngineOptions options = PairOptions();
  head.target = kPairTarget;
  options.draft_model = fixtures::WriteTinyHead(PairFolder(), head);
  return options;
}

inline std::unique_ptr<SpeculativeDecoder> MakeDecoder(const EngineOptions& options) {
  return Got(SpeculativeDecoder::Create(options));
}
inline std::unique_ptr<Scorer> MakeScorer(const EngineOptions& options) {
  return Got(Scorer::Create(options));
}

inline Request Ask(int n, float temperature = 0, std::uint64_t seed = 0, int k = 4) {
  Request r;
  r.prompt = "once upon a time";
  r.max_new_tokens = n;
  r.sampling.temperature = temperature;
  r.ignore_eos = true;
  r.seed = seed;
  r.speculative.num_speculative_tokens = k;
  return r;
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Words that recur, so that prompts share prefixes; variants part behind 40 tokens.
inline std::vector<std::int32_t> RecurringTokens(int n, int variant) {
  std::vector<std::int32_t> tokens = {1};
  for (int i = 1; i < n; ++i) tokens.push_back(260 + (i * 7 + (i > 40 ? variant : 0)) % 50);
  return tokens;
}

// Accepts every draft: the negative control.
class AcceptsAll final : public Verifier {
 public:
  std::string_view name() const override { return "all"; }
  bool lossless() const override { return false; }
  Verdict Verify(DraftsToVerify& draft) override {
    return {draft.length(), draft.Sample(draft.length())};
  }
};

// The second token of a text, over seeds: the first one is the same for all and is not drafted.
inline std::vector<std::int64_t> SecondTokens(Engine& engine, int first_seed, int n,
                                              const std::string& method = "") {
  std::vector<std::int64_t> counts(320);
  Request r = Ask(3, 1, 0, 1);
  r.prompt.clear();
  r.prompt_tokens = {1, 60, 61};
  r.sampling.top_k = 8;
  r.sampling.logit_bias = {{70, 1000.0f}};
  r.sampling.presence_penalty = 2000;  // it does not occur again
  if (!method.empty()) r.speculative.method = method;
  for (int i = 0; i < n; ++i) {
    r.seed = static_cast<std::uint64_t>(first_seed + i);
    ++counts[static_cast<std::size_t>(Generated(engine, r).token_ids[1])];
  }
  return counts;
}

// Chi-square of two samples of equal size, over tokens that occurred at least 20 times together.
inline double Difference(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                         int& freedom) {
  double sum = 0;
  freedom = -1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] < 20) continue;
    sum += std::pow(static_cast<double>(a[i] - b[i]), 2) / static_cast<double>(a[i] + b[i]);
    ++freedom;
  }
  return sum;
}

}  // namespace foretoken
