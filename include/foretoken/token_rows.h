// SPDX-License-Identifier: Apache-2.0
// foretoken/token_rows.h: rows that hold one number for each token of a vocabulary: logits, or
// probabilities.
#pragma once

#include <cstdint>
#include <span>

namespace foretoken {

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

}  // namespace foretoken
