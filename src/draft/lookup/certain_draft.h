// SPDX-License-Identifier: Apache-2.0
// draft/lookup/certain_draft.h: builds a proposal of certain tokens, for lookups; it knows where a
// draft ends.
//
// Begin allocates; nothing else does.
#pragma once

#include <vector>

#include "draft/drafter.h"

namespace foretoken::draft {

class CertainDraft {
 public:
  void Begin(const SequenceStart& start);

  // Starts a proposal of up to n tokens behind a text with n_generated tokens of output.
  void Start(int n, int n_generated) noexcept;
  bool open() const { return left_ > 0; }
  // Adds the next draft, while open. The draft closes with the last token that was wanted and with
  // an end token. An end token that is still masked is left out, because the target cannot agree.
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
