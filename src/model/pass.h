// SPDX-License-Identifier: Apache-2.0
// model/pass.h: one pass of a network as a value, and what the pass gives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "foretoken/stats.h"
#include "kernels/choice.h"
#include "kv/segment.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

// The hidden states that a runner keeps for a drafter: one row of floats for each row of a pass,
// the parts in this order.
struct FeatureRequest {
  std::vector<int> layers;  // the residual stream that enters a layer; n_layers: leaves the last
  bool normed = false;      // the last layer's output after the output norm

  int parts() const { return static_cast<int>(layers.size()) + normed; }
};

// What a network computes in one pass. It holds views only: its owner keeps what they show until
// the pass has run. A pass says everything that a runner needs to know, so that it can be sent to a
// runner elsewhere.
struct Pass {
  std::span<const Token> tokens;          // [n_rows]
  std::span<const kv::Segment> segments;  // cover all rows in order; a sequence appears once
  std::span<const int> logit_rows;        // the rows whose logits are wanted, ascending
  // For each of them: the token that is wanted in its place, or kNone. Empty: all rows are wanted
  // whole. A runner that gives whole rows at no cost may give them all the same.
  std::span<const kernels::Choice> choices = {};
  // For heads: what each row reads beside its token, [n_rows, width], contiguous. The features of
  // the target; with own_features the head's own feature of an earlier row. The rows of a block
  // drafter read either features or their tokens: null where they read their tokens. With own_features
  // its pass gives what each token adds to the logits of the row behind it, whose own feature it reads.
  const float* features = nullptr;
  bool own_features = false;
  // The logits are those of the runner's reduced output. REQUIRES: it has one.
  bool reduced = false;
  // The result has the states of all rows. REQUIRES: the network is no head.
  bool wants_states = false;
  // A row sees the last so many positions, what is before them in their first block, and the first
  // block of all; in a layer with a window the last so many alone. 0: a row sees all that its layers see.
  int window = 0;
  // > 0: where the window hides blocks, a row also sees so many of those, the ones in which a key may fit
  // its queries best, in layers that keep the bounds of keys (CacheOptions::key_bounds). REQUIRES: a window.
  int best_blocks = 0;

  int n_rows() const { return static_cast<int>(tokens.size()); }
  // Blocks behind the first one that a row does not see which would see so many positions without the
  // window.
  int SkippedBlocks(int n_positions) const noexcept {
    return window == 0 ? 0 : std::max(0, (n_positions - window) / tensor::kKvBlock - 1);
  }
  // The window that the kernel is given for a layer. A layer that sees all (0) keeps 0: there `SkippedBlocks`
  // narrows the view.
  int WindowOf(int layer_window) const noexcept {
    return window == 0 ? layer_window : std::min(layer_window, window);
  }
  kernels::ChoiceRule RuleOf(std::size_t logit_row) const {
    return choices.empty() ? kernels::ChoiceRule::kNone : choices[logit_row].rule;
  }
};

// What a block drafter's selector gives for each row of logits: some columns of the logits, and how well
// each of them follows each of those of the row before.
struct Candidates {
  int n = 0;                              // of a row; 0: there are none
  const std::int32_t* columns = nullptr;  // [logit rows, n], the best logit first
  // [logit rows, n before, n]: logits. Where a row follows the first row of its segment, all n before
  // are alike.
  const float* scores = nullptr;

  std::span<const std::int32_t> Columns(int row) const noexcept {
    return {columns + std::int64_t{row} * n, static_cast<std::size_t>(n)};
  }
  const float* Scores(int row, int before) const noexcept {
    return scores + (std::int64_t{row} * n + before) * n;
  }
};

// What a pass gives: views of the runner's memory. They are valid until the runner's next pass.
struct PassResult {
  const float* logits = nullptr;  // row i belongs to row logit_rows[i] of the pass
  std::int64_t logits_stride = 0;
  std::span<const std::uint8_t> finite_rows;  // of each row of logits: whether all are finite
  // For each row of logits the token that it chose, and then nothing else is known of the row, or
  // kNoToken where the row is whole. Empty: all rows are whole.
  std::span<const Token> chosen = {};
  const float* features = nullptr;  // [n_rows, features_width]; null: none are kept
  std::int64_t features_width = 0;
  // [n_rows, states_stride], if the pass wants them: what leaves the output norm.
  const float* states = nullptr;
  std::int64_t states_stride = 0;
  std::int64_t distinct_experts = 0;  // that its rows used, added over the layers
  RankTraffic traffic;                // with the other ranks, where there are some
  // Heads: for each row of logits the head's own feature, which a next row reads.
  std::span<const float* const> own_features;
  // Block drafters, in passes with own_features: for each row of logits how certain the network is of
  // the token that will be drawn from them, from 0 to 1. Empty: it does not say.
  std::span<const float> certainties;
  Candidates candidates;

  const float* Logits(int i) const noexcept { return logits + i * logits_stride; }
  // From row i on.
  std::span<const Token> Chosen(int i) const noexcept {
    return chosen.empty() ? chosen : chosen.subspan(static_cast<std::size_t>(i));
  }
  bool Finite(int i) const noexcept { return finite_rows[static_cast<std::size_t>(i)] != 0; }
  // Null where no features are kept.
  const float* Features(int row) const noexcept {
    return features == nullptr ? nullptr : features + row * features_width;
  }
  const float* State(int row) const noexcept { return states + row * states_stride; }
  const float* OwnFeature(int i) const noexcept {
    return own_features[static_cast<std::size_t>(i)];
  }
};

}  // namespace foretoken::model
