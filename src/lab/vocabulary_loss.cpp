// SPDX-License-Identifier: Apache-2.0
#include "lab/vocabulary_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace foretoken::lab {
namespace {

constexpr std::size_t kRows = 16;  // that are scored together: a row may have 250,000 numbers

// The probability of the tokens that have no pair.
double Outside(std::span<const float> logits, std::span<const char> paired) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double all = 0, outside = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp(static_cast<double>(logits[i]) - most);
    all += weight;
    if (i >= paired.size() || paired[i] == 0) outside += weight;
  }
  return outside / all;
}

}  // namespace

Status AddText(Scorer& draft, const TokenMap& map, std::span<const std::int32_t> prompt,
               std::span<const std::int32_t> text, VocabularyLoss& loss) {
  std::vector<char> paired(static_cast<std::size_t>(map.draft), 0),
      has(static_cast<std::size_t>(map.target), 0);
  for (const TokenMap::Pair& pair : map.pairs) {
    paired[static_cast<std::size_t>(pair.draft)] = 1;
    has[static_cast<std::size_t>(pair.target)] = 1;
  }
  std::vector<std::int32_t> own;
  // Rows of the draft after which it would draft a token of the text: of its last token before each.
  std::vector<char> drafts;
  const auto read = [&](std::int32_t token) {
    const auto reading = map.Reading(token);
    own.insert(own.end(), reading.begin(), reading.end());
    drafts.resize(own.size(), 0);
  };
  for (const std::int32_t token : prompt) read(token);
  for (const std::int32_t token : text) {
    ++loss.tokens;
    loss.unpaired += has[static_cast<std::size_t>(token)] == 0;
    if (!drafts.empty()) ++drafts.back();
    const std::size_t before = own.size();
    read(token);
    loss.own_tokens += static_cast<std::int64_t>(own.size() - before);
  }
  own.resize(
      std::min(own.size(), static_cast<std::size_t>(draft.engine().summary().target.context_size)));
  FORETOKEN_CHECK_OK(draft.Truncate(0, 0));
  for (std::size_t begin = 0; begin < own.size(); begin += kRows) {
    const std::size_t n = std::min(kRows, own.size() - begin);
    FORETOKEN_TRY(const TokenRows rows, draft.Score(std::span(own).subspan(begin, n)));
    for (std::size_t i = 0; i < n; ++i)
      if (drafts[begin + i] != 0)
        loss.outside += drafts[begin + i] * Outside(rows.Row(static_cast<int>(i)), paired);
  }
  return {};
}

}  // namespace foretoken::lab
