// SPDX-License-Identifier: Apache-2.0
// foretoken/drafter.h: drafts of a program's own.
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
// Its name is a method as "ngram" is: the default one where SpeculativeOptions.method is empty, one
// of several ("echo,ngram"), or a single request's.
//
// What it proposes changes the speed, never the text: the engine checks every token, draws from the
// distributions itself and keeps copies of them. A draft ends before a token or a distribution that
// is not one; an exception counts as no more drafts. The first such fault of each kind becomes a
// notice in EngineSummary.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "foretoken/request.h"

namespace foretoken {

// A chain of drafts in the making. The engine owns it; use it only inside Propose.
class DraftProposal {
 public:
  // Prompt, committed tokens and the drafts so far; at least one token.
  virtual std::span<const std::int32_t> text() const = 0;
  // Drafts that may be added; 0 once the draft has ended, by an end token for example.
  virtual int left() const = 0;
  // The next draft is `token`, certainly. False, and nothing happens, where it cannot be added.
  virtual bool Push(std::int32_t token) = 0;
  // The next draft is drawn from `distribution`, [vocabulary], probabilities that sum to 1; -1, and
  // nothing happens, where it cannot be. At temperature 0 the most probable token is taken. Where
  // the strategy is sample-match, the draw is the one by which the target will draw its own token
  // at this position (an exponential race with the same noise): a distribution that equals the
  // target's gives the target's token, and every draft is accepted. Where the request wants drafts
  // of some probability only (draft_p_min) and no token has it, the draft ends here.
  // REQUIRES: Drafter::ReportsLaws().
  virtual std::int32_t Draw(std::span<const float> distribution) = 0;

 protected:
  ~DraftProposal() = default;
};

struct DraftedRequest {
  int sequence = 0;  // [0, max_sequences); another request may have it after this one's end
  std::span<const std::int32_t> prompt;  // at least one token
  int max_new_tokens = 0;
  int vocabulary_size = 0;
  SamplingParameters sampling;  // for drafts: the request's, or those it names for its drafter
  std::span<const std::int32_t> end_tokens = {};  // the request ends with any of these
  int min_new_tokens = 0;                         // end tokens have probability 0 until then
  float draft_p_min = 0;                          // drafts end where no token has this probability
};

// What a round committed.
struct DraftedRound {
  int sequence = 0;
  // The accepted drafts and a token of the target's; cut where the request ends.
  std::span<const std::int32_t> committed;
  int drafted = 0, accepted = 0;  // of this drafter's last proposal; 0 where another's was judged
};

// One of the drafts that are wanted together.
struct DraftTask {
  int sequence = 0;
  DraftProposal* proposal = nullptr;
};

// What a drafter's model did.
struct DraftWork {
  std::int64_t forwards = 0;
  int read_tokens = 0;  // committed tokens that it lacked before it drafted
  double read_ms = 0;   // what reading them took
};

// What a drafter can serve; 0: anything.
struct DrafterLimits {
  int max_sequences = 0;
  int vocabulary_size = 0;
};

// All calls come from the thread that calls the engine. An object may serve one engine only; the
// program may keep a pointer to it. Where the cost model chooses draft lengths, Engine::Open asks
// for a few drafts of a made-up text to learn what they cost.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Letters, digits, '-' and '_'; no other method's.
  virtual std::string_view name() const = 0;
  // True if it uses DraftProposal::Draw. Where the strategy is left open, its drafts are verified
  // by `residual` if draft lengths follow fixed rules (fixed, ewma, heuristic), and by
  // `sample-match` if they follow measured time or the load (cost-model, the default, and
  // batch-size). Drafts that are certain are verified by `sample-match`.
  virtual bool ReportsLaws() const { return false; }

  // Engine::Open and DraftSession refuse to use it for more than this.
  virtual DrafterLimits limits() const { return {}; }

  // A sequence that has not ended gets another text in place of its own.
  virtual void Begin(const DraftedRequest&) {}
  // As many drafts as are worth it, none included.
  virtual void Propose(int sequence, DraftProposal& proposal) = 0;
  // The same for several sequences: a model can share its passes among them. Calls Propose for each
  // unless it is overridden.
  virtual void ProposeAll(std::span<const DraftTask> tasks);
  virtual void Observe(const DraftedRound&) {}
  virtual void End(int /*sequence*/) {}

  // Drops what texts that have ended taught.
  virtual void Forget() {}
  // Committed tokens that a model has to read before its first draft; the cost model counts them.
  virtual int Unread(int /*sequence*/) const { return 0; }
  // Since the last call.
  virtual DraftWork TakeWork() { return {}; }
};

}  // namespace foretoken
