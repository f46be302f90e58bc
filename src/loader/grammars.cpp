// SPDX-License-Identifier: Apache-2.0
#include "loader/grammars.h"

#include <algorithm>
#include <string>
#include <vector>

#include "grammar/control_literal.h"

namespace foretoken::loader {

// What a grammar takes the token for.
std::string Grammars::TextOf(Token token) const {
  if (tokenizer_.IsControl(token)) return grammar::ControlLiteral(token);
  std::string text = tokenizer_.Piece(token);
  return grammar::LooksLikeControl(text) ? std::string() : text;
}

grammar::GrammarCache& Grammars::Cache() {
  const std::scoped_lock lock(mutex_);
  if (cache_) return *cache_;
  std::vector<std::string> texts;
  for (Token t = 0; t < tokenizer_.vocabulary_size(); ++t) texts.push_back(TextOf(t));
  std::vector<Token> ends = end_tokens_;
  // The model's own end token comes first, because it is the most probable.
  std::stable_partition(ends.begin(), ends.end(), [&](Token t) { return t == tokenizer_.eos(); });
  cache_ = std::make_unique<grammar::GrammarCache>(
      std::make_shared<const grammar::TokenTrie>(texts, ends),
      [this](std::string_view text) {
        return tokenizer_.Encode(text, {.add_special = false, .continues = true});
      },
      max_bytes_);
  return *cache_;
}

Result<std::shared_ptr<const grammar::Grammar>> Grammars::Of(const SamplingParameters& sampling) {
  if (sampling.grammar.empty()) return std::shared_ptr<const grammar::Grammar>();
  return Cache().Get(sampling.grammar);
}

void Grammars::Limit(std::size_t max_bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  max_bytes_ = max_bytes;
  if (cache_) cache_->Limit(max_bytes);
}

void Grammars::Bound() noexcept {
  const std::scoped_lock lock(mutex_);
  if (cache_) cache_->Bound();
}

}  // namespace foretoken::loader
