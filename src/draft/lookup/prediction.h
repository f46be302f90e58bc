// SPDX-License-Identifier: Apache-2.0
// draft/lookup/prediction.h: drafts from text that came with the request: an answer that is probably like
// it, such as a file that is to be edited.
//
// Drafts follow the prediction, from its beginning, as long as the output does. After a divergence
// they go on behind the place of the prediction that the output's last tokens stand at: the longest
// match of up to 8 and at least 2 tokens; of equals the next one ahead of where the output left the
// prediction, else the last one before. Where nothing matches there is no draft.
//
// Evidence grows with the tokens that the output has followed the prediction for in a row, the
// match where it came back included: 0 below 2, 1 below 4, 2 below 8, 3.
//
// Costs: a comparison for each committed token; after a divergence, for each proposal, a hash
// look-up and a few comparisons for each place where the last two tokens stand. Memory is taken at
// Begin.
#pragma once

#include <array>
#include <vector>

#include "draft/lookup/certain_draft.h"
#include "draft/lookup/ngram_index.h"
#include "draft/registry.h"

namespace foretoken::draft {

extern const DrafterSpec kPredictionSpec;

class PredictionDrafter final : public ListedDrafter {
 public:
  // It uses the first max_context tokens of a prediction.
  PredictionDrafter(int max_sequences, int max_context);

  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;

 private:
  static constexpr int kLongest = 8, kShortest = 2;  // matches, in tokens

  struct Sequence {
    std::vector<Token> prediction;
    NgramIndex index;  // of the prediction, n = kShortest
    int next = 0;      // prediction[next] follows the output, or would have, where it was left
    bool followed = true;
    int n_followed = 0;  // tokens in a row
    int n_output = 0;
    std::array<Token, kLongest> newest = {};  // the output's last tokens; the newest is the last
    CertainDraft draft;
  };

  static void Append(Sequence& s, Token token) noexcept;
  static void Realign(Sequence& s) noexcept;
  static int MatchLength(const Sequence& s, int end) noexcept;

  const int max_context_;
  std::vector<Sequence> sequences_;
};

}  // namespace foretoken::draft
