// SPDX-License-Identifier: Apache-2.0
// foretoken/drafts.h: the drafts of a round, as a caller that runs rounds step by step asks for them
// and gets them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace foretoken {

// Rows that hold one number for each token of a vocabulary: logits, or probabilities.
// A view, [rows, vocabulary_size]; the function that returns it says how long it is valid.
struct TokenRows {
  TokenRows() = default;
  TokenRows(const float* first, int n_rows, int n_tokens, std::int64_t from_row_to_row)
      : data(first), rows(n_rows), vocabulary_size(n_tokens), stride(from_row_to_row) {}
  // As many whole rows as `values` has, without gaps between them.
  TokenRows(std::span<const float> values, int n_tokens)
      : TokenRows(values.data(), n_tokens < 1 ? 0 : static_cast<int>(std::ssize(values) / n_tokens),
                  n_tokens, n_tokens) {}

  bool empty() const { return rows == 0; }
  // REQUIRES: i in [0, rows).
  std::span<const float> Row(int i) const {
    return {data + i * stride, static_cast<std::size_t>(vocabulary_size)};
  }

  // The last n rows. REQUIRES: n in [0, rows].
  TokenRows Last(int n) const { return {data + (rows - n) * stride, n, vocabulary_size, stride}; }

  const float* data = nullptr;
  int rows = 0, vocabulary_size = 0;
  std::int64_t stride = 0;  // floats from the beginning of a row to that of the next
};

inline constexpr int kMaxDraft = 64;         // drafts of a round, whatever is asked for
inline constexpr int kMaxBestBlocks = 1024;  // SpeculativeOptions::draft_best_blocks

struct DraftOptions {
  // Number of drafts for each request, instead of the draft-length controller's choice. There are
  // fewer where the drafter has no more, where the text ends, and beyond the request's
  // num_speculative_tokens. [0, 64]
  std::optional<int> num_steps = {};
  // Also return the distribution that each draft was drawn from, after the drafter's sampling
  // parameters. There is none where drafts were certain.
  bool distributions = false;
  // Also return the drafter's logits before any processing. Models and heads have them.
  bool logits = false;
};

struct Drafts {
  std::vector<std::int32_t> tokens;  // empty: the round decodes plainly, or prefills
  // [tokens]: the probability of each in the distribution that it was drawn from; empty if all were
  // certain.
  std::vector<float> probabilities;
  // [tokens, vocabulary_size], if DraftOptions asks for them.
  std::vector<float> distributions, logits;
  int vocabulary_size = 0;  // numbers of a row: TokenRows(logits, vocabulary_size)
};

// Drafts as views; the function that returns them says how long they are valid.
struct DraftsView {
  std::span<const std::int32_t> tokens;
  std::span<const float> probabilities;
  TokenRows distributions, logits;
};

}  // namespace foretoken
