// SPDX-License-Identifier: Apache-2.0
// draft/lookup/certain_draft.h: a proposal of certain tokens in the making, for drafters that look text
// up: it knows where a draft ends.
//
// Begin allocates; nothing else does.
#pragma once

#include <vector>

#include "draft/drafter.h"

namespace foretoken::draft {

class CertainDraft {
 public:
  static constexpr int kMaxTokens = 64;  // of one proposal, whatever is asked for

  void Begin(const SequenceStart& start);

  // Starts a proposal of up to n tokens behind a text with n_generated tokens of output.
  void Start(int n, int n_generated) noexcept;
  bool open() const { return left_ > 0; }
  // The next draft, while open. It closes the draft where it is the last that was wanted or an end
  // token, and stays out of it where it is one that is still masked: the target cannot agree.
  void Push(Token token) noexcept;
  void Close() noexcept { left_ = 0; }

  // A view, valid until the next Start. evidence: see round::Proposal.
  round::Proposal proposal(int evidence) const { return {.tokens = tokens_, .evidence = evidence}; }

 private:
  std::vector<Token> tokens_, end_tokens_;
  int left_ = 0;  // tokens that still fit
  int n_generated_ = 0, min_new_tokens_ = 0;
};

}  // namespace foretoken::draft
