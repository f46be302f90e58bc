// SPDX-License-Identifier: Apache-2.0
// foretoken/stats.h: counters of speculation. A rate without a denominator is absent, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace foretoken {

struct SpeculationStats {
  // Target passes that decoded for this request, with or without a draft.
  std::int64_t rounds = 0;
  std::int64_t draft_rounds = 0;  // rounds with at least one draft
  std::int64_t drafted = 0;       // draft tokens sent to the target
  std::int64_t accepted = 0;      // of these, accepted and committed
  // Of the accepted ones: in parts that think, by relaxed acceptance
  // (SpeculativeOptions::use_relaxed_acceptance_for_thinking).
  std::int64_t accepted_relaxed = 0;
  std::int64_t recovered = 0;  // target tokens after a rejection
  std::int64_t bonus = 0;      // target tokens after a draft accepted whole
  // Target tokens of rounds without a draft, and the first token, which the prefill gives.
  std::int64_t plain = 0;
  std::int64_t emitted = 0;         // tokens given to the caller
  std::int64_t rolled_back = 0;     // target cache entries that were written and removed
  std::int64_t draft_forwards = 0;  // passes of the draft model
  // Passes of the target that this request was part of, prefill included.
  std::int64_t target_forwards = 0;
  std::vector<std::int64_t> drafted_per_position;  // [i]: rounds that drafted position i (from 0)
  // Those with a verdict: all earlier ones were accepted, and no end cut the draft off.
  std::vector<std::int64_t> judged_per_position;
  std::vector<std::int64_t> accepted_per_position;  // those that were accepted and committed
  std::vector<std::int64_t> k_histogram;            // [m]: rounds that drafted m tokens
  double draft_ms = 0;                              // drafting, the draft model's catch-up included
  double verify_ms = 0;                             // target passes of decoding rounds
  double overhead_ms = 0;                           // verification, bookkeeping, rollback
  double draft_prompt_ms = 0;                       // the draft model's work on the prompt

  std::optional<double> acceptance_rate() const {
    if (drafted == 0) return std::nullopt;
    return static_cast<double>(accepted) / static_cast<double>(drafted);
  }
  // 1 + accepted / rounds that drafted: counts the target's own token.
  std::optional<double> mean_acceptance_length() const {
    if (draft_rounds == 0) return std::nullopt;
    return 1.0 + static_cast<double>(accepted) / static_cast<double>(draft_rounds);
  }
  void Add(const SpeculationStats& other);
};

struct Timings {
  double prompt_ms = 0;          // prefill of the prompt by the target
  double decode_ms = 0;          // from the end of prefill to the last token
  int prompt_tokens = 0;         // prompt tokens that the target prefilled
  int cached_prompt_tokens = 0;  // prompt tokens found in the cache
  int decoded_tokens = 0;  // tokens that decode_ms produced (the first token belongs to prefill)
  int preemptions = 0;     // how often it was preempted
};

}  // namespace foretoken
