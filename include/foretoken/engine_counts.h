// SPDX-License-Identifier: Apache-2.0
// foretoken/engine_counts.h: counters of an engine's passes and rounds since it was opened, for all
// requests together, running ones included.
//
// A round is counted for its request, a pass for the engine: one pass may serve many rounds and
// parts of prompts. All counts only grow, except rows_budget, which is the present value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "foretoken/limits.h"
#include "foretoken/rank_traffic.h"

namespace foretoken {

// Passes by the rows that they verify. Passes with prompt rows are kept apart, because they say
// nothing about the cost of rows.
inline constexpr std::array<std::string_view, 7> kRowBandNames = {"1",    "2",   "3-4",   "5-8",
                                                                  "9-16", "17+", "prompt"};

// Why a round had no drafts.
enum class PlainReason {
  kCost,      // the controller chose none, or did not plan the request
  kDisabled,  // its request does not draft
  kNoDraft,   // the drafter had no drafts, or fewer than the shortest draft
  kNoRoom,    // the text ends with the next token: by its limit or by the context
  kBudget,    // no rows of the pass were left, or a prompt was read beside it (a mixed batch)
  kMemory     // no blocks of the cache were left
};
inline constexpr std::array<std::string_view, 6> kPlainReasonNames = {
    "cost", "disabled", "no_draft", "no_room", "budget", "memory"};

// Rounds that also measure something.
enum class ProbeKind {
  kBaseline,  // decodes plainly, to measure plain decoding
  kDrafter    // uses a drafter that is otherwise not in use
};
inline constexpr std::array<std::string_view, 2> kProbeKindNames = {"baseline", "drafter"};

// What a pass costs by its rows.
struct RowCost {
  int rows = 0;
  double us = 0;
};

struct EngineCounts {
  static constexpr int kMostDrafts = kMaxDraft;  // in a round
  // Upper bounds of the classes of ratios; the last class has none.
  static constexpr std::array<double, 14> kRatioBounds = {0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1,
                                                          1.05, 1.1, 1.25, 1.5, 2,   3,    4};

  struct Passes {
    std::int64_t passes = 0;
    double us = 0;                      // of target passes
    std::int64_t distinct_experts = 0;  // that they read, added over their layers
    RankTraffic traffic;                // with other ranks, where there are some
  };
  struct Rounds {
    std::int64_t rounds = 0;
    double us = 0;  // of whole steps: a step with n rounds counts n times
  };
  // The engine's own time, with and without drafts.
  struct Overhead {
    double sample_us = 0;    // verification, and handing out tokens
    double rollback_us = 0;  // removing rows from the caches, including the drafters'
    double control_us = 0;   // choosing requests and draft lengths, and learning from the results
  };
  struct Ratios {
    std::array<std::int64_t, kRatioBounds.size() + 1> counts{};
    double sum = 0;
    void Add(double ratio) noexcept;
  };

  std::array<Passes, kRowBandNames.size()> verify{};
  std::array<std::int64_t, kMostDrafts + 1> chosen{};  // [K]: rounds for which K was chosen
  std::array<Rounds, kPlainReasonNames.size()> plain{};
  std::array<std::int64_t, kProbeKindNames.size()> probes{};
  Overhead overhead;
  // Predicted over actual time of steps without prompt rows.
  Ratios cost_model;
  int rows_budget = 0;         // rows that all rounds of a pass may have together
  std::int64_t rows_used = 0;  // rows that they had: one for each round and each draft
  // Prompt tokens that had to be prefilled although the cache was searched for them.
  // EngineLoad::cached_prompt_tokens counts those that were found.
  std::int64_t prefix_misses = 0;

  // Decoding rounds, with and without drafts.
  std::int64_t rounds() const noexcept;
  const Rounds& Plain(PlainReason reason) const { return plain[static_cast<std::size_t>(reason)]; }
};

}  // namespace foretoken
