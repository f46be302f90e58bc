// SPDX-License-Identifier: Apache-2.0
// engine/requests/grammars.h: the grammars of requests, compiled over a vocabulary and kept for later ones.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "foretoken/request.h"
#include "grammar/grammar_cache.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

// Any thread. The first grammar takes the time to sort the vocabulary's texts.
class Grammars {
 public:
  // The tokenizer must outlive this. end_tokens: those that end a text.
  Grammars(const text::Tokenizer& tokenizer, std::vector<Token> end_tokens)
      : tokenizer_(tokenizer), end_tokens_(std::move(end_tokens)) {}

  // Null where the parameters have none. Errors: as GrammarCache::Get.
  [[nodiscard]] Result<std::shared_ptr<const grammar::Grammar>> Of(
      const SamplingParameters& sampling);
  // As GrammarCache::Bound: after each step.
  void Bound() noexcept;

 private:
  grammar::GrammarCache& Cache();

  const text::Tokenizer& tokenizer_;
  const std::vector<Token> end_tokens_;
  std::mutex mutex_;                              // of the pointer
  std::unique_ptr<grammar::GrammarCache> cache_;  // made for the first one
};

}  // namespace foretoken::engine
