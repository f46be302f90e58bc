// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/selector.h"

#include <algorithm>

#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

constexpr int kMaximaBlock = 64;  // of kernels.block_max

bool WantsLogits(const Pass& pass) {
  return !pass.logit_rows.empty();
}

}  // namespace

Selector::Selector(const Workspace& space, const ModelConfig& config, const Weights& weights,
                   const Output& output)
    : space_(space),
      weights_(weights),
      head_(*weights.head),
      last_(output.last()),
      logits_(output.logits()),
      gates_(space.scratch.selector.gates.View(config.head->selector_rank)),
      n_columns_(output.n_columns()),
      n_(std::min(config.head->n_candidates, n_columns_)),
      rank_(config.head->selector_rank) {}

void Selector::AddPhases(std::vector<Phase>& phases) const {
  if (!space_.ranks.leads()) return;
  phases.push_back(PhaseOf<&Selector::Choose>(*this, Split::kOther, WantsLogits));
  phases.push_back(PhaseOf<&Selector::Score>(*this, Split::kOther, WantsLogits));
}

Candidates Selector::Result() const noexcept {
  return {.n = n_, .columns = Columns(0), .scores = Scores(0)};
}

Token Selector::TokenOf(std::int32_t column) const noexcept {
  return weights_.output_tokens.empty() ? column
                                        : weights_.output_tokens[static_cast<std::size_t>(column)];
}

void Selector::Choose(const Pass& pass, int thread) const noexcept {
  const int n_rows = static_cast<int>(pass.logit_rows.size());
  MultiplyShare(space_, head_.selector, last_, n_rows, gates_, thread);
  const auto rows = space_.pool.ShareOf(n_rows, thread);
  float* const work = space_.scratch.selector.Work(thread);
  for (int i = rows.begin; i < rows.end; ++i) ChooseBest(i, work);
}

// Keeps the best of the columns so far in order. Few blocks of columns hold any that is better.
void Selector::ChooseBest(int i, float* maxima) const noexcept {
  const float* const logits = logits_.Row(i);
  std::int32_t* const best = Columns(i);
  const auto insert = [&](std::int32_t column, int at) {
    for (; at > 0 && logits[best[at - 1]] < logits[column]; --at) best[at] = best[at - 1];
    best[at] = column;
  };
  for (int column = 0; column < n_; ++column) insert(column, column);
  float worst = logits[best[n_ - 1]];
  space_.kernels.block_max(logits, n_columns_, maxima);
  for (int block = 0; block * kMaximaBlock < n_columns_; ++block) {
    if (!(maxima[block] > worst)) continue;
    const int begin = std::max(n_, block * kMaximaBlock),
              end = std::min(n_columns_, (block + 1) * kMaximaBlock);
    for (int column = begin; column < end; ++column)
      if (logits[column] > worst) insert(column, n_ - 1), worst = logits[best[n_ - 1]];
  }
}

void Selector::Score(const Pass& pass, int thread) const noexcept {
  SelectorScratch& scratch = space_.scratch.selector;
  const auto rows = space_.pool.ShareOf(static_cast<int>(pass.logit_rows.size()), thread);
  for (int i = rows.begin; i < rows.end; ++i) ScoreRow(pass, i, scratch.Work(thread));
}

Token Selector::FirstToken(const Pass& pass, int i) const noexcept {
  const int row = pass.logit_rows[static_cast<std::size_t>(i)];
  const auto segment =
      std::find_if(pass.segments.begin(), pass.segments.end(),
                   [row](const kv::Segment& s) { return row < s.row_begin + s.n_rows; });
  const bool follows_another = i > 0 && row > segment->row_begin + 1 &&
                               pass.logit_rows[static_cast<std::size_t>(i) - 1] == row - 1;
  if (follows_another) return kNoToken;
  const Token token = pass.tokens[static_cast<std::size_t>(segment->row_begin)];
  return token < weights_.second_rows() ? token : 0;
}

// The candidates' numbers lie together for each index, so that the sums of all candidates go on at once.
void Selector::ScoreRow(const Pass& pass, int i, float* work) const noexcept {
  float *const numbers = work, *const behind = work + rank_;
  for (int c = 0; c < n_; ++c) {
    weights_.EmbedBehind(TokenOf(Columns(i)[c]), numbers);
    for (int k = 0; k < rank_; ++k) behind[std::int64_t{k} * n_ + c] = numbers[k];
  }
  const Token first = FirstToken(pass, i);
  if (first == kNoToken) {
    for (int p = 0; p < n_; ++p)
      ScoreBehind(TokenOf(Columns(i - 1)[p]), i, behind, numbers, Scores(i) + std::int64_t{p} * n_);
    return;
  }
  ScoreBehind(first, i, behind, numbers, Scores(i));
  for (int p = 1; p < n_; ++p) std::copy_n(Scores(i), n_, Scores(i) + std::int64_t{p} * n_);
}

void Selector::ScoreBehind(Token before, int i, const float* behind, float* work,
                           float* scores) const noexcept {
  weights_.EmbedBeside(before, work);
  const float* const gate = gates_.Row(i);
  std::fill_n(scores, n_, 0.0f);
  for (int k = 0; k < rank_; ++k) {
    const float x = work[k] * gate[k];
    const float* const y = behind + std::int64_t{k} * n_;
    for (int c = 0; c < n_; ++c) scores[c] += x * y[c];
  }
  for (int c = 0; c < n_; ++c) scores[c] += logits_.Row(i)[Columns(i)[c]];
}

}  // namespace foretoken::model
