// SPDX-License-Identifier: Apache-2.0
// foretoken/engine_counts.h: what an engine has counted of its passes and rounds since it was
// opened, all requests together, those that still run included.
//
// A round is counted for its request, a pass for the engine: one pass may serve many rounds and
// read parts of prompts. All counts only grow; rows_budget alone is of the moment.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace foretoken {

// Passes by the rows that they verify; those that read prompts too are kept apart, because they
// say nothing about the cost of rows.
inline constexpr std::array<std::string_view, 7> kRowBandNames = {"1",    "2",   "3-4",   "5-8",
                                                                  "9-16", "17+", "prompt"};

// Why a round had no drafts.
enum class PlainReason {
  kCost,      // the controller wanted none, or spared itself the question
  kDisabled,  // its request does not draft
  kNoDraft,   // drafts were wanted, and the drafter had none, or fewer than are worth a round
  kNoRoom,    // the text ends with the next token: by its limit or by the context
  kBudget,    // no rows of the pass were left
  kMemory     // no blocks of the cache were left
};
inline constexpr std::array<std::string_view, 6> kPlainReasonNames = {
    "cost", "disabled", "no_draft", "no_room", "budget", "memory"};

// Rounds that measure, beside what they decode.
enum class ProbeKind {
  kBaseline,  // plainly, for what plain decoding gives
  kDrafter    // with a drafter of which nothing good is known
};
inline constexpr std::array<std::string_view, 2> kProbeKindNames = {"baseline", "drafter"};

// What a pass costs by its rows.
struct RowCost {
  int rows = 0;
  double us = 0;
};

struct EngineCounts {
  static constexpr int kMostDrafts = 64;  // of a round
  // Upper ends of all classes of ratios but the last, which has none.
  static constexpr std::array<double, 14> kRatioBounds = {0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1,
                                                          1.05, 1.1, 1.25, 1.5, 2,   3,    4};

  struct Passes {
    std::int64_t passes = 0;
    double us = 0;  // of the target
  };
  struct Rounds {
    std::int64_t rounds = 0;
    double us = 0;  // of whole steps: one with n rounds counts for each of them
  };
  // Time of the engine's own; a plain engine has it too.
  struct Overhead {
    double sample_us = 0;    // judging, and handing out the tokens
    double rollback_us = 0;  // taking back rows of the caches, the drafters' included
    double control_us = 0;   // who takes part, how much is drafted, what that taught
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
  // Predicted over actual time of steps that read no prompts.
  Ratios cost_model;
  int rows_budget = 0;         // rows that the rounds of a pass may have together
  std::int64_t rows_used = 0;  // that they had: one for each round and draft
  // Prompt tokens that had to be read, though the cache was searched for them: those it had are
  // EngineLoad::cached_prompt_tokens.
  std::int64_t prefix_misses = 0;

  // Decoding rounds, with and without drafts.
  std::int64_t rounds() const noexcept;
  const Rounds& Plain(PlainReason reason) const { return plain[static_cast<std::size_t>(reason)]; }
};

}  // namespace foretoken
