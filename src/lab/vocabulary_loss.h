// SPDX-License-Identifier: Apache-2.0
// lab/vocabulary_loss.h: what it costs that a draft model has another vocabulary than the target: tokens
// that it cannot draft, and probability that it gives to tokens that the target does not have.
#pragma once

#include <cstdint>
#include <span>

#include "foretoken/result.h"
#include "foretoken/scorer.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::lab {

struct VocabularyLoss {
  std::int64_t tokens = 0;      // of the texts, without their prompts
  std::int64_t unpaired = 0;    // of these: the draft has no counterpart, so they are never drafted
  double outside = 0;           // sum over these tokens of the draft's probability without a pair
  std::int64_t own_tokens = 0;  // the draft's tokens for them

  // A draft's first token is accepted in at most this share of the rounds.
  double MostAccepted() const {
    return tokens == 0 ? 1 : 1 - static_cast<double>(unpaired) / static_cast<double>(tokens);
  }
  double OwnTokens() const {
    return tokens == 0 ? 0 : static_cast<double>(own_tokens) / static_cast<double>(tokens);
  }
  double MeanOutside() const { return tokens == 0 ? 0 : outside / static_cast<double>(tokens); }
};

// Adds a text of the target's: a prompt, then what followed. `draft` scores the draft model, and its
// first sequence is emptied. Errors: those of Scorer::Score.
[[nodiscard]] Status AddText(Scorer& draft, const TokenMap& map,
                             std::span<const std::int32_t> prompt,
                             std::span<const std::int32_t> text, VocabularyLoss& loss);

}  // namespace foretoken::lab
