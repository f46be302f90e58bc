// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/selector.h: how well each candidate of a block drafter's row follows each candidate
// of the row before (DFlash 2).
//
//   candidates of a row: its best columns, the best first, of equal ones the lowest
//   g = W f, where f is the row's own feature, its normed state
//   score[p, c] = logit[c] + sum over i of (before[p][i] * g[i]) * behind[c][i]
//
// `before` and `behind` are tables of tokens. The row that follows the segment's first row has that row's
// token in place of candidates: all its p are alike. A sum begins with 0; each product and each sum
// rounds.
#pragma once

#include "model/blocks/output.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Selector final : public Block {
 public:
  // output: gives the logits. All references must outlive the block.
  Selector(const Workspace& space, const ModelConfig& config, const Weights& weights,
           const Output& output);

  // Behind those of the output. Rank 0 alone computes.
  void AddPhases(std::vector<Phase>& phases) const override;

  // What the last pass gave, if it read tokens.
  Candidates Result() const noexcept;

 private:
  void Choose(const Pass& pass, int thread) const noexcept;
  void Score(const Pass& pass, int thread) const noexcept;
  void ChooseBest(int i, float* maxima) const noexcept;
  void ScoreRow(const Pass& pass, int i, float* work) const noexcept;
  void ScoreBehind(Token before, int i, const float* behind, float* work,
                   float* scores) const noexcept;
  // The token in whose place a row of logits has no candidates before it, or kNoToken.
  Token FirstToken(const Pass& pass, int i) const noexcept;
  Token TokenOf(std::int32_t column) const noexcept;
  std::int32_t* Columns(int i) const noexcept {
    return space_.scratch.selector.columns.data() + std::int64_t{i} * n_;
  }
  float* Scores(int i) const noexcept {
    return space_.scratch.selector.scores.data() + std::int64_t{i} * n_ * n_;
  }

  const Workspace space_;
  const Weights& weights_;
  const HeadWeights& head_;
  const Activation last_, logits_, gates_;
  const int n_columns_;  // of the logits
  const int n_, rank_;   // candidates of a row; numbers of a token
};

}  // namespace foretoken::model
