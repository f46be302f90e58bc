// SPDX-License-Identifier: Apache-2.0
// engine/step/verification.h: which drafts of a pass the target accepts, and its own next token.
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "engine/requests/sequence.h"
#include "engine/step/flat_pass.h"
#include "model/pass.h"
#include "round/verdict.h"

namespace foretoken::engine {

struct SequenceVerdict {
  round::Verdict verdict;
  // Tokens of text before a row of logits that the request needs and that is not finite; -1: all
  // such rows are finite.
  int not_finite = -1;
  int processor_fault = -1;  // likewise: where a logits processor left NaN or +infinity
};

struct Verdicts {
  std::vector<SequenceVerdict> entries;  // as in the plan
  std::vector<int> kept;                 // rows of each sequence that the cache keeps
};

class Verification {
 public:
  explicit Verification(int vocabulary);

  // Samplers are as found on return. Allocates nothing but what a request's grammar or logits
  // processor does.
  void Verify(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
              const model::PassResult& result, const Sequences& sequences,
              Verdicts& verdicts) noexcept;

 private:
  void VerifyOne(const PlannedSequence& planned, const round::Proposal& drafted,
                 const SequenceRows& rows, const model::PassResult& result, Sequence& s,
                 SequenceVerdict& out) noexcept;

  round::Verdict VerifyParts(const round::Proposal& proposal, const verify::LogitsView& logits,
                             Sequence& s) noexcept;

  AlignedBuffer<float> scratch_;  // [2, vocabulary]
};

}  // namespace foretoken::engine
