// SPDX-License-Identifier: Apache-2.0
// engine/requests/sequence.h: the requests that run.
#pragma once

#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "engine/requests/job.h"
#include "foretoken/engine.h"
#include "sampling/sampler.h"
#include "text/emitter.h"
#include "text/thinking_marks.h"
#include "verify/verifier.h"

namespace foretoken::engine {

// How drafts of parts that think are verified
// (SpeculativeOptions::use_relaxed_acceptance_for_thinking).
struct Thinking {
  const verify::Verifier* verifier = nullptr;  // null: as all others; there are no marks then
  const text::ThinkingMarks* marks = nullptr;
  text::ThinkingPlace place = {};  // of the end of the committed text

  bool relaxes() const { return verifier != nullptr; }
};

struct Sequence {
  Job* job = nullptr;
  sampling::Sampler sampler;  // its text is the sequence's: prompt and committed tokens
  text::Emitter emitter;
  const verify::Verifier* verifier = nullptr;
  Thinking thinking = {};
  std::vector<int> drafters = {};  // that may draft for it; empty: it decodes plainly
  int most_drafts = 0;             // of a round, whatever the controller says
  int least_drafts = 1;            // of a round that has any: shorter drafts are not sent
  bool follows_drafts = false;     // other drafts would give another text (of the same distribution
                                   // where the strategy is lossless)
  bool drafts_first = false;       // its first token may be drafted
  int n_likely = 0;                // of the target's best tokens, that its drafters want to see
  int first_likely = 0;            // row of this pass's in the table of such tokens
  int reached = 0;   // positions that the target's cache has held, also before a preemption
  int n_pooled = 0;  // positions of its prompt whose states its embedding has
  std::vector<double> pooled_sum = {};  // of these states, where the mean is asked for
  bool preempted = false;               // it lost its blocks and waits for others
  int passed_over = 0;                  // passes since its prompt got rows
  Completion completion = {};

  const Request& request() const { return job->request; }
  // It has a token of its own.
  bool begun() const { return sampler.n_generated() > std::ssize(request().generated); }
  // Its drafts are its caller's, and it ends when they are verified.
  bool verifies() const { return request().drafts.has_value(); }
  std::span<const Token> given() const {
    return verifies() ? std::span<const Token>(*request().drafts) : std::span<const Token>();
  }
  // How many drafts it has must not depend on other requests.
  bool keeps_drafts() const { return follows_drafts || verifies(); }
  // More is read of its rows of logits than what its verifier chooses: log-probabilities, likely
  // tokens, or the verdicts on drafts of parts that think.
  bool reads_logits() const {
    return request().logprobs >= 0 || n_likely > 0 || thinking.relaxes();
  }
  bool drafts() const { return !drafters.empty(); }
  // Not all log-probabilities of the prompt that were asked for are known yet.
  bool awaits_prompt_logprobs() const {
    return request().prompt_logprobs >= 0 &&
           completion.prompt_logprobs.size() + 1 < job->prompt.size();
  }
  // Not all states that its embedding is made of are known yet.
  bool awaits_embedding() const {
    return request().embedding && n_pooled < static_cast<int>(job->prompt.size());
  }
  bool awaits_prompt() const { return awaits_prompt_logprobs() || awaits_embedding(); }
};

// By sequence id.
class Sequences {
 public:
  explicit Sequences(int n) : slots_(static_cast<std::size_t>(n)) {}
  int size() const { return static_cast<int>(slots_.size()); }
  // Empty where no request has the id.
  std::unique_ptr<Sequence>& Slot(SeqId seq) { return slots_[static_cast<std::size_t>(seq)]; }
  const std::unique_ptr<Sequence>& Slot(SeqId seq) const {
    return slots_[static_cast<std::size_t>(seq)];
  }
  // REQUIRES: a request has the id.
  Sequence& At(SeqId seq) const { return *slots_[static_cast<std::size_t>(seq)]; }
  bool none() const {
    return std::all_of(slots_.begin(), slots_.end(), [](const auto& s) { return s == nullptr; });
  }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }

 private:
  std::vector<std::unique_ptr<Sequence>> slots_;
};

}  // namespace foretoken::engine
