// SPDX-License-Identifier: Apache-2.0
// draft/drafting_testing.h: tells a drafter of texts, and asks it for drafts.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "draft/drafter.h"

namespace foretoken::draft {

using Tokens = std::vector<Token>;

// Begins a text, which 400 tokens may follow if the start does not say how many.
inline void Start(Drafter& drafter, const Tokens& prompt, SequenceStart start = {}) {
  start.prompt = prompt;
  if (start.max_new_tokens == 0) start.max_new_tokens = 400;
  drafter.Begin(start);
}

inline void Commit(Drafter& drafter, const Tokens& tokens, SeqId seq = 0) {
  const Observation observation{.seq = seq, .committed = tokens};
  drafter.Observe({&observation, 1});
}

inline round::Proposal Proposal(Drafter& drafter, int most, SeqId seq = 0) {
  const Ask ask{seq, most};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  return proposal;
}
// Drafts that are certain.
inline Tokens Drafted(Drafter& drafter, int most, SeqId seq = 0) {
  const round::Proposal proposal = Proposal(drafter, most, seq);
  EXPECT_EQ(proposal.q, nullptr);
  return {proposal.tokens.begin(), proposal.tokens.end()};
}

// Prompts, and the evidence of the first proposal behind them.
template <typename Make>
void ExpectEvidence(const Make& make, const std::vector<std::pair<Tokens, int>>& cases) {
  for (const auto& [prompt, evidence] : cases) {
    auto drafter = make();
    Start(drafter, prompt);
    EXPECT_EQ(Proposal(drafter, 8).evidence, evidence) << testing::PrintToString(prompt);
  }
}

}  // namespace foretoken::draft
