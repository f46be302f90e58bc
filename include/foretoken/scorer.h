// SPDX-License-Identifier: Apache-2.0
// foretoken/scorer.h: a model's logits for given tokens, text by text, with a cache that the
// program moves.
//
//   auto scorer = foretoken::Scorer::Create({.model = "target.gguf"});
//   auto logits = (*scorer)->Score(prompt);       // [n, vocabulary]: row i predicts token i + 1
//   auto more = (*scorer)->Score(drafts);         // goes on behind the prompt
//   (*scorer)->Truncate(0, n_kept);               // takes rejected drafts back
//
// With verification.h it is all that a speculative loop of one's own needs of a target, and of a
// draft model. A face of Engine: each row has the bits that the engine's own passes give it,
// however the tokens are divided into calls. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/token_rows.h"

namespace foretoken {

// Tokens that go on with the text of one sequence.
struct ScoreQuery {
  int sequence = 0;                      // [0, EngineOptions.max_sequences)
  std::span<const std::int32_t> tokens;  // [n], n >= 0
};

class Scorer {
 public:
  // Of the options those of a model and its cache count; nothing is drafted. Errors: as
  // Engine::Open.
  [[nodiscard]] static Result<std::unique_ptr<Scorer>> Create(EngineOptions options);
  ~Scorer();

  // token_logits [batch, n, vocabulary]: the model's logits as it gives them at each query token,
  // that is, for the token after it. Sequences share the passes, and the tokens stay in the cache.
  // The rows hold until the next call. Errors, with nothing read: kInvalidArgument (a sequence that
  // does not exist or comes twice, an unknown token), kTooLarge (beyond the context or the cache).
  [[nodiscard]] Result<std::vector<TokenRows>> Score(std::span<const ScoreQuery> batch);
  // Of one sequence.
  [[nodiscard]] Result<TokenRows> Score(std::span<const std::int32_t> tokens, int sequence = 0);

  int length(int sequence = 0) const;  // tokens in the cache; 0 where there is no such sequence
  // Takes tokens from `length` on back. Errors: kInvalidArgument (no such sequence, or a length
  // beyond its own).
  [[nodiscard]] Status Truncate(int sequence, int length);

  const Engine& engine() const;  // for Tokenize, Detokenize, summary

 private:
  class Impl;
  explicit Scorer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
