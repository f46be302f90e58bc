// SPDX-License-Identifier: Apache-2.0
// foretoken/scorer.h: a model's logits for given tokens, text by text, with a cache that your
// program controls.
//
//   auto scorer = foretoken::Scorer::Create({.model = "target.gguf"});
//   auto logits = (*scorer)->Score(prompt);       // [n, vocabulary]: row i predicts token i + 1
//   auto more = (*scorer)->Score(drafts);         // continues behind the prompt
//   (*scorer)->Truncate(0, n_kept);               // removes rejected drafts
//
// Together with verification.h this is all that your own speculative loop needs of a target or a
// draft model. It uses an Engine: each row has the bits that the engine's own passes give it,
// however the tokens are divided into calls. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "foretoken/drafts.h"
#include "foretoken/engine.h"

namespace foretoken {

// Tokens that continue the text of one sequence.
struct ScoreQuery {
  int sequence = 0;                      // [0, EngineOptions.max_sequences)
  std::span<const std::int32_t> tokens;  // [n], n >= 0
};

class Scorer {
 public:
  // Only the options of the model and its cache count; nothing is drafted. kept: what to keep
  // of each token beside its logits; the width is not read. Errors: as Engine::Open;
  // kInvalidArgument (a layer that the model does not have).
  [[nodiscard]] static Result<std::unique_ptr<Scorer>> Create(EngineOptions options,
                                                              const HiddenStates& kept = {});
  ~Scorer();

  // token_logits [batch, n, vocabulary]: the model's unprocessed logits at each query token, which
  // predict the token after it. Sequences share the passes, and the tokens stay in the cache. The
  // rows are valid until the next call. Errors, with nothing computed: kInvalidArgument (a sequence
  // that does not exist or comes twice, an unknown token), kTooLarge (beyond the context or the
  // cache).
  [[nodiscard]] Result<std::vector<TokenRows>> Score(std::span<const ScoreQuery> batch);
  // Scores one sequence.
  [[nodiscard]] Result<TokenRows> Score(std::span<const std::int32_t> tokens, int sequence = 0);

  // [tokens, width]: the hidden states of the tokens of the last Score, query after query, valid until
  // the next call; empty if none are kept. A head drafts from those of a text before its last token
  // (GivenSampling.hidden_states).
  std::span<const float> hidden_states() const;

  int length(int sequence = 0) const;  // tokens in the cache; 0 if there is no such sequence
  // Removes the tokens from `length` on. A model with sliding windows keeps what it needs to remove
  // 65 tokens; one with recurrent layers all but the first token of the last Score, 64 at most.
  // Errors: kInvalidArgument (no such sequence, or a length beyond its own), kTooLarge (what a window
  // would see was dropped, or a state has taken it in; the sequence is empty then).
  [[nodiscard]] Status Truncate(int sequence, int length);

  const Engine& engine() const;  // for Tokenize, Detokenize, summary

 private:
  class Impl;
  explicit Scorer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
