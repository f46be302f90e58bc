// SPDX-License-Identifier: Apache-2.0
// foretoken/stats.h: counters of speculation: of one request (SpeculationStats), and of an engine since
// it was opened (EngineCounts). A rate without a denominator is absent, never 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "foretoken/drafts.h"

namespace foretoken {

// Counters of one request, or the sums of several.
struct SpeculationStats {
  // Target passes that decoded for this request, with or without a draft.
  std::int64_t rounds = 0;
  std::int64_t draft_rounds = 0;  // rounds with at least one draft
  std::int64_t drafted = 0;       // draft tokens sent to the target
  std::int64_t accepted = 0;      // of these, accepted and committed
  // The accepted drafts that relaxed acceptance verified, in parts that think
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
  std::vector<std::int64_t> verified_per_position;
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

  // Calls visit(name, member) for each statistic: with the names of the JSON, and in its order. A member is a
  // number, a list of them, or the function of a rate. Replies, their schemas, the C interface and sums are made of
  // this list.
  static void VisitFields(const auto& visit) {
    using S = SpeculationStats;
    visit("rounds", &S::rounds), visit("draft_rounds", &S::draft_rounds);
    visit("drafted", &S::drafted), visit("accepted", &S::accepted);
    visit("accepted_relaxed", &S::accepted_relaxed), visit("recovered", &S::recovered);
    visit("bonus", &S::bonus), visit("plain", &S::plain), visit("emitted", &S::emitted);
    visit("acceptance_rate", &S::acceptance_rate);
    visit("mean_acceptance_length", &S::mean_acceptance_length);
    visit("drafted_per_position", &S::drafted_per_position);
    visit("judged_per_position", &S::verified_per_position);
    visit("accepted_per_position", &S::accepted_per_position);
    visit("draft_forwards", &S::draft_forwards), visit("target_forwards", &S::target_forwards);
    visit("rolled_back", &S::rolled_back), visit("k_histogram", &S::k_histogram);
    visit("draft_ms", &S::draft_ms), visit("verify_ms", &S::verify_ms);
    visit("overhead_ms", &S::overhead_ms), visit("draft_prompt_ms", &S::draft_prompt_ms);
  }
  // Those that add up: all but rates.
  static void VisitSums(const auto& visit) {
    VisitFields([&](const char*, auto member) {
      if constexpr (std::is_member_object_pointer_v<decltype(member)>) visit(member);
    });
  }
};

struct Timings {
  double prompt_ms = 0;          // prefill of the prompt by the target
  double decode_ms = 0;          // from the end of prefill to the last token
  int prompt_tokens = 0;         // prompt tokens that the target prefilled
  int cached_prompt_tokens = 0;  // prompt tokens found in the cache
  int decoded_tokens = 0;  // tokens that decode_ms produced (the first token belongs to prefill)
  int preemptions = 0;     // how often it was preempted
};

// What a rank exchanges with the other ranks that compute a network with it.
struct RankTraffic {
  std::int64_t gathers = 0;
  std::int64_t gathered_bytes = 0;  // that this rank received from the others
  std::int64_t broadcasts = 0;
  double wait_us = 0;  // in gathers: the network, and slower ranks

  RankTraffic& operator+=(const RankTraffic& more) noexcept {
    gathers += more.gathers, gathered_bytes += more.gathered_bytes;
    broadcasts += more.broadcasts, wait_us += more.wait_us;
    return *this;
  }
  // What came after `before`.
  RankTraffic Since(const RankTraffic& before) const noexcept {
    return {gathers - before.gathers, gathered_bytes - before.gathered_bytes,
            broadcasts - before.broadcasts, wait_us - before.wait_us};
  }
};

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

// Counters of an engine's passes and rounds, for all requests together, running ones included.
//
// A round is counted for its request, a pass for the engine: one pass may serve many rounds and
// parts of prompts. All counts only grow, except rows_budget, which is the present value.
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

// The file of EngineOptions::cache_file, and what went to it and came back since it was opened; all 0 where
// there is none. A record is a block of 32 tokens, or a copy of a recurrent state.
struct CacheFileCounts {
  std::int64_t blocks = 0, states = 0, bytes = 0;  // that it has now; the bytes of all records
  std::int64_t blocks_read = 0, states_read = 0, bytes_read = 0, tokens_read = 0;
  std::int64_t blocks_written = 0, states_written = 0, bytes_written = 0;
  std::int64_t refused = 0;  // records that were damaged
  bool failed = false;       // it is not written any more (Engine::CacheFileStatus)
};

}  // namespace foretoken
