// SPDX-License-Identifier: Apache-2.0
// draft/grammar_drafter.h: drafts what a request's grammar forces: where only one text can follow
// (the keys of a JSON schema, its brackets, the end), its tokens as the tokenizer cuts them.
//
// The model may spell the same text with other tokens, so the target verifies these drafts like all
// others. Evidence grows with their number: 0 for one, 1 below 4, 2 below 8, 3.
//
// Cost: a look-up for each proposal and each committed token; for a new state of a grammar, the
// tokenizer's work on the forced text.
#pragma once

#include <array>
#include <vector>

#include "draft/lookup/certain_draft.h"
#include "draft/registry.h"
#include "foretoken/drafts.h"
#include "grammar/grammar_walk.h"

namespace foretoken::draft {

extern const DrafterSpec kGrammarSpec;

class GrammarDrafter final : public ListedDrafter {
 public:
  explicit GrammarDrafter(int max_sequences);

  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;

 private:
  struct Sequence {
    grammar::GrammarWalk walk;  // along the committed text; without a grammar nothing is drafted
    int n_output = 0;
    CertainDraft draft;
  };

  std::array<Token, kMaxDraft> forced_ = {};
  std::vector<Sequence> sequences_;
};

}  // namespace foretoken::draft
