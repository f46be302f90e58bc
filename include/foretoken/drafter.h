// SPDX-License-Identifier: Apache-2.0
// foretoken/drafter.h: your own drafter.
//
//   class Echo final : public foretoken::Drafter {  // says the last token again
//     std::string_view name() const override { return "echo"; }
//     void Propose(int, foretoken::DraftProposal& proposal) override {
//       while (proposal.left() > 0) proposal.Push(proposal.text().back());
//     }
//   };
//   auto engine = foretoken::Engine::Open({.model = "target.gguf",
//                                          .drafter = std::make_shared<Echo>()});
//
// Its name is a method like "ngram": the default method if SpeculativeOptions.method is empty, one
// of several ("echo,ngram"), or the method of a single request.
//
// A drafter changes the speed, never the text: the engine checks every token, draws from the
// distributions itself and keeps copies of them. An invalid token or distribution ends the draft
// before it; an exception ends it too. The first fault of each kind becomes a notice in
// EngineSummary.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "foretoken/drafts.h"
#include "foretoken/request.h"

namespace foretoken {

// The chain of drafts that is being made. The engine owns it; use it only inside Propose.
class DraftProposal {
 public:
  // Prompt, committed tokens and the drafts so far; at least one token.
  virtual std::span<const std::int32_t> text() const = 0;
  // How many drafts may still be added; 0 once the draft has ended, for example by an end token.
  virtual int left() const = 0;
  // Adds `token` as a certain draft. Returns false, and changes nothing, if it cannot be added.
  virtual bool Push(std::int32_t token) = 0;
  // Draws the next draft from `distribution`, [vocabulary], probabilities that sum to 1. Returns
  // -1, and changes nothing, if that is not possible. At temperature 0 it takes the most probable
  // token. Under sample-match it draws as the target will draw its own token at this position (an
  // exponential race with the same noise): if the distribution equals the target's, it gives the
  // target's token, and every draft is accepted. If the request only wants drafts above some
  // probability (draft_p_min) and no token reaches it, the draft ends here. REQUIRES:
  // Drafter::ReportsDistributions().
  virtual std::int32_t Draw(std::span<const float> distribution) = 0;
  // Whether the caller wants the logits behind the drafts, as a model gives them. A drafter that has
  // them then calls ShowLogits, [drafts added, vocabulary], before Propose returns; they are copied.
  virtual bool wants_logits() const { return false; }
  virtual void ShowLogits(const TokenRows& /*logits*/) {}

 protected:
  ~DraftProposal() = default;
};

// A text that begins.
struct DrafterText {
  int sequence = 0;  // [0, max_sequences); another request may get it after End
  std::span<const std::int32_t> prompt = {};  // at least one token
  int max_new_tokens = 0;
  int vocabulary_size = 0;
  SamplingParameters sampling = {};  // for drafts: the request's own, or its draft_sampling
  std::span<const std::int32_t> end_tokens = {};  // the request ends with any of these
  int min_new_tokens = 0;                         // end tokens have probability 0 before that
  float draft_p_min = 0;                          // drafts end where no token has this probability
  // Stands for Request::cache_salt: a drafter that learns from texts should draft from those of the
  // same number only. 0: the request has none.
  std::int64_t salt = 0;
  // False: the drafter should keep nothing of this text once it has ended (Request::reuse_prefix).
  bool teaches = true;
};

// What a round committed.
struct DrafterRound {
  int sequence = 0;
  // The accepted drafts and one token of the target; cut where the request ends.
  std::span<const std::int32_t> committed = {};
  int drafted = 0, accepted = 0;  // for this drafter's last proposal; 0 if another's was verified
};

// One of several drafts that are made together.
struct DrafterTask {
  int sequence = 0;
  DraftProposal* proposal = nullptr;
};

// What a drafter's model did.
struct DrafterWork {
  std::int64_t forwards = 0;
  int read_tokens = 0;  // committed tokens that it had to read before drafting
  double read_ms = 0;   // the time of that reading
};

// The limits of a drafter; 0: none.
struct DrafterLimits {
  int max_sequences = 0;
  int vocabulary_size = 0;
};

// All calls come from the thread that calls the engine. An object serves one engine only, which
// refuses it while another engine or a session's text uses it; your program may keep a pointer to
// it. If the cost model chooses draft lengths, Engine::Open asks for a few drafts of a made-up text
// to measure their cost.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Letters, digits, '-' and '_'; not the name of another method.
  virtual std::string_view name() const = 0;
  // True if it uses DraftProposal::Draw. If no strategy is named, its drafts are verified by
  // `residual` when draft lengths follow fixed rules (fixed, ewma, heuristic), and by
  // `sample-match` when they follow measured time or the load (cost-model, the default, and
  // batch-size). Certain drafts are verified by `sample-match`.
  virtual bool ReportsDistributions() const { return false; }

  // Engine::Open and DraftSession refuse to exceed these. Texts of sessions have the sequences from 0
  // on; without a limit, as many as there are.
  virtual DrafterLimits limits() const { return {}; }

  // A new text begins. If the sequence has not ended, the new text replaces its old one.
  virtual void Begin(const DrafterText&) {}
  // Adds as many drafts as are worthwhile, possibly none.
  virtual void Propose(int sequence, DraftProposal& proposal) = 0;
  // Proposes for several sequences, so that a model can share its passes among them. Calls Propose
  // for each unless it is overridden.
  virtual void ProposeAll(std::span<const DrafterTask> tasks);
  virtual void Observe(const DrafterRound&) {}
  virtual void End(int /*sequence*/) {}

  // Forgets what texts that have ended taught.
  virtual void Forget() {}
  // Committed tokens that a model has to read before its first draft; the cost model counts them.
  virtual int Unread(int /*sequence*/) const { return 0; }
  // The work since the last call.
  virtual DrafterWork TakeWork() { return {}; }
};

}  // namespace foretoken
