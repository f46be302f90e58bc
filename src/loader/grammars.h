// SPDX-License-Identifier: Apache-2.0
// loader/grammars.h: the grammars of requests, compiled for the tokens of one tokenizer and kept
// for later requests.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/request.h"
#include "grammar/grammar_cache.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::loader {

// Any thread. The first grammar also pays for sorting the texts of the vocabulary.
class Grammars {
 public:
  // The tokenizer must outlive it. end_tokens: the tokens that end a text.
  Grammars(const text::Tokenizer& tokenizer, std::vector<Token> end_tokens)
      : tokenizer_(tokenizer), end_tokens_(std::move(end_tokens)) {}

  // Null if the parameters have no grammar. Errors: those of GrammarCache::Get.
  [[nodiscard]] Result<std::shared_ptr<const grammar::Grammar>> Of(
      const SamplingParameters& sampling);
  // As GrammarCache::Limit.
  void Limit(std::size_t max_bytes) noexcept;
  // Calls GrammarCache::Bound. For the end of each step.
  void Bound() noexcept;

 private:
  grammar::GrammarCache& Cache();
  std::string TextOf(Token token) const;

  const text::Tokenizer& tokenizer_;
  const std::vector<Token> end_tokens_;
  std::mutex mutex_;  // guards what follows
  std::size_t max_bytes_ = grammar::GrammarCache::kMaxBytes;
  std::unique_ptr<grammar::GrammarCache> cache_;  // made with the first grammar
};

}  // namespace foretoken::loader
