// SPDX-License-Identifier: Apache-2.0
// draft/drafter.h: anything that proposes tokens: a draft model, n-gram lookup, nothing.
//
// The engine tells a drafter the text of each sequence (Begin: the prompt; Observe: what each round
// committed) and asks for proposals. A drafter keeps what it needs of the text, its own cache
// included. A drafter may always propose fewer tokens than asked for, or none; it never fails a
// request. It may write to the target's cache only at pending positions (kv/transaction.h), which it
// rolls back before Propose returns.
//
// All calls come from the engine's thread. Propose and Observe allocate nothing.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/rng.h"
#include "foretoken/drafter.h"
#include "foretoken/request.h"
#include "foretoken/stats.h"
#include "grammar/grammar.h"
#include "model/pass.h"
#include "round/proposal.h"
#include "round/verdict.h"

namespace foretoken::draft {

struct SequenceStart {
  SeqId seq = 0;
  std::span<const Token> prompt;  // at least one token
  int n_generated = 0;            // its last tokens are output already, for models' penalties
  int max_new_tokens = 0;         // behind all of them
  // The drafter's own: greedy drafts are certain, others are drawn from the processed distribution.
  SamplingParameters sampling;
  std::span<const Token> end_tokens;  // a draft ends with one of these
  int min_new_tokens = 0;             // end tokens are masked until then
  Noise noise;
  Stream stream = Stream::kDraft;     // the noise for drawing drafts
  float draft_p_min = 0;              // a draft ends where no token has this probability
  std::span<const Token> prediction;  // tokens that the output probably resembles
  bool own_text_only = false;         // drafts must not depend on what other sequences taught
  SaltId salt = kNoSalt;  // other texts may teach this one, and it them, if they have it
  bool teaches = true;    // false: no other text is drafted from this one
  std::shared_ptr<const grammar::Grammar> grammar = {};  // that the output follows; null: none
};

struct Ask {
  SeqId seq = 0;
  // >= 0; the room in the target's context and in the request is already counted.
  int max_tokens = 0;
  bool with_logits = false;  // keep all logits in the proposal, if the drafter computes any
  // Takes each draft, and draws it if the drafter has a distribution; its text is the sequence's.
  // Null: the drafter draws with its own noise. Lookups ignore it.
  DraftProposal* proposal = nullptr;
};

// What a round committed for one sequence.
struct Observation {
  SeqId seq = 0;
  std::span<const Token>
      committed;    // the accepted drafts and the target's token, cut by the request's end
  int drafted = 0;  // of the last proposal
  int accepted = 0;
  // For drafters that need features: those of the kept positions that the target's pass processed,
  // [n_features, feature_stride], from first_position on. While a prompt is prefilled in parts,
  // observations have features and no committed tokens. Features from position 0 on start again,
  // whatever came before, and so do those behind a gap if the drafter starts anywhere.
  const float* features = nullptr;
  int n_features = 0;
  // A row has what all drafters need. feature_parts[i] is the place of the drafter's part i in it,
  // in widths of the target. Empty: the row has only the drafter's parts, in order, with their
  // stride.
  std::int64_t feature_stride = 0;
  std::span<const int> feature_parts;
  Pos first_position = 0;
  // The target's n_likely most probable tokens (raw logits, best first) at each committed position:
  // [committed.size(), n_likely]. n_likely is LikelyTokens() of the drafter.
  const Token* likely = nullptr;
  int n_likely = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;  // "ngram"
  // True if proposals have the distributions that they were drawn from (unless the request's draft
  // sampling is greedy).
  virtual bool ReportsDistributions() const = 0;
  // True if proposals have the raw logits of the drafted tokens.
  virtual bool ReportsLogits() const { return false; }
  // True if a proposal takes one pass, however many tokens it has.
  virtual bool DraftsAtOnce() const { return false; }
  // How many likely tokens observations need for each position; 0: none.
  virtual int LikelyTokens() const { return 0; }
  // True if its network reads the target's cache, as long as that has all of a text but its newest
  // token.
  virtual bool ReadsTargetCache() const { return false; }
  // True if its network has a reduced output beside the whole one (draft/networks/output_views.h).
  virtual bool HasReducedOutput() const { return false; }
  // Which of them the next proposals use. REQUIRES: HasReducedOutput, for the reduced one.
  virtual void UseReducedOutput(bool) noexcept {}
  // The positions that its network may see of a long text in place of all; 0: there is no such window.
  virtual int NarrowWindow() const { return 0; }
  // Whether the next proposals do. REQUIRES: NarrowWindow() > 0, if so.
  virtual void UseNarrowWindow(bool) noexcept {}
  // The target's hidden states that observations need.
  virtual model::FeatureRequest Needs() const { return {}; }
  // Whether those may begin behind the first position of a text, whose beginning came from a cache.
  virtual bool StartsAnywhere() const { return false; }

  virtual void Begin(const SequenceStart& start) = 0;
  // proposals[i] answers asks[i]; the views stay valid until the next Propose.
  virtual void Propose(std::span<const Ask> asks,
                       std::span<round::Proposal> proposals) noexcept = 0;
  virtual void Observe(std::span<const Observation> observations) noexcept = 0;
  virtual void End(SeqId seq) noexcept = 0;

  // Forgets what sequences that have ended taught; call it while none runs.
  virtual void Forget() {}

  // Committed tokens that the drafter's model would have to read before its first draft.
  virtual int Missing(SeqId) const noexcept { return 0; }

  // Counters since the last call, then zeroed.
  struct Work {
    std::int64_t forwards = 0;
    // Parts of the time spent in Propose: reading prompts; reading rows that its model lacked,
    // prompts included, in passes of their own.
    double prompt_ms = 0, catch_up_ms = 0;
    int catch_up_rows = 0;
    int not_finite = 0;  // drafts that were not made because the model's logits were not finite
  };
  virtual Work TakeWork() noexcept { return {}; }
};

}  // namespace foretoken::draft
