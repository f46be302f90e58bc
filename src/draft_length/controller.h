// SPDX-License-Identifier: Apache-2.0
// draft_length/controller.h: the draft-length controller: which drafter drafts for each sequence in
// the next pass, and how many tokens. It changes the speed. Where the verification strategy lets
// drafts decide the text, it changes the text too, but not its distribution; the lengths of such
// sequences depend on their text alone.
//
// There is one for each engine; sequences are known by their ids. Choose sees all sequences that
// decode in a pass, so that they can share its rows.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "draft_length/round_costs.h"
#include "foretoken/options.h"
#include "foretoken/stats.h"

namespace foretoken::draft_length {

inline constexpr int kEvidenceClasses = 4;  // see round::Proposal

// What one drafter can do for a sequence.
struct Offer {
  int drafter = 0;
  int most = 0;       // drafts that it has made, or may be asked for
  bool made = false;  // they are made already, so they cost nothing more
  int evidence = 0;   // of drafts that are made
  int missing = 0;    // committed tokens that its model would have to read first
};

// A sequence that decodes in the next pass.
struct Plan {
  SeqId seq = 0;
  int context = 0;                // positions before its row
  int left = 1 << 20;             // tokens that its text may still get, this round's among them
  std::span<const Offer> offers;  // empty: it must decode plainly
  // The answer: k drafts of offers[chosen]; k = 0: none.
  int chosen = 0, k = 0;
  bool out_of_rows = false;        // k = 0: the pass has no rows left
  std::optional<ProbeKind> probe;  // the round also measures something
};

struct RoundOutcome {
  int drafter = 0, evidence = 0;
  int drafted = 0, accepted = 0;
  int withheld = 0;                 // drafts that were made but not sent, because they were too few
  int n_decoding = 1, context = 0;  // of the pass
  bool reads = false;               // it has prompt rows too
  double us = 0;                    // of the whole round
  // What it tells about another drafter that was not asked: what its drafts would have become.
  int other = -1;  // -1: nothing
  int other_drafted = 0, other_accepted = 0;
};

// What a request may draft in a round: nothing, or `least` to `most` tokens.
struct DraftLengths {
  int least = 1, most = 1;  // 1 <= least <= most
  bool by_text = false;     // they depend on its text alone, not on time or load
};

// What verdicts on a drafter's drafts of one class of evidence have taught about one position of a draft:
// how many there were, where old ones count less, and how many of the drafts were accepted.
struct LearnedVerdicts {
  int drafter = 0, evidence = 0, position = 0;
  double verified = 0, accepted = 0;
};

class Controller {
 public:
  virtual ~Controller() = default;

  // Before the first request: what another controller, for the same drafters, had learned.
  virtual void Start(std::span<const LearnedVerdicts>) noexcept {}
  virtual std::vector<LearnedVerdicts> Learned() const { return {}; }
  // A request begins. It may allocate, unlike what follows.
  virtual void Begin(SeqId seq, const DraftLengths& lengths) = 0;
  // How many drafts are worth making before Choose if they cost nothing; n_decoding sequences share
  // the pass.
  virtual int Most(SeqId seq, int n_decoding) const noexcept = 0;
  virtual void Choose(std::span<Plan> plans) noexcept = 0;
  // A decoding round of a sequence that was begun has ended.
  virtual void Observe(SeqId seq, const RoundOutcome& round) noexcept = 0;
  // The most rows of a pass that it plans with.
  virtual int MostRows() const noexcept { return std::numeric_limits<int>::max(); }
  // Forgets what rounds of this sequence and of others taught; its request continues.
  virtual void Reset(SeqId seq) noexcept = 0;
  // The AdaptiveLookahead that chooses a sequence's draft lengths, or null. Its configuration stays
  // when a request begins.
  virtual AdaptiveLookahead* Adaptive(SeqId) noexcept { return nullptr; }
};

struct ControllerSettings {
  std::string_view name;  // of a row of the registry
  int max_sequences = 1, n_drafters = 1;
  AdaptiveLookaheadConfig adaptive_lookahead = {};
  std::span<const BatchDraftLength> batch_sizes = {};
  std::span<const int> widths =
      {};  // for cost-model and by-text: the lengths of drafts; empty: all
  // All must outlive it. costs: for cost-model; fixed_costs: for by-text, must never change.
  const RoundCosts *costs = nullptr, *fixed_costs = nullptr;
};

}  // namespace foretoken::draft_length
