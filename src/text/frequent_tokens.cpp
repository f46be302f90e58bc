// SPDX-License-Identifier: Apache-2.0
#include "text/frequent_tokens.h"

#include <algorithm>
#include <numeric>

namespace foretoken::text {
namespace {

bool IsOneAsciiCharacter(const Tokenizer& tokenizer, Token token) {
  const std::string piece = tokenizer.Piece(token);
  return piece.size() == 1 && static_cast<unsigned char>(piece[0]) < 128;
}

// The tokens that occur in the sample, the most frequent first.
std::vector<Token> ByFrequency(const Tokenizer& tokenizer, std::string_view sample) {
  std::vector<int> counts(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  for (const Token token : tokenizer.Encode(sample, {.add_special = false}))
    ++counts[static_cast<std::size_t>(token)];
  std::vector<Token> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](Token t) { return counts[static_cast<std::size_t>(t)] == 0; });
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
    return counts[static_cast<std::size_t>(a)] > counts[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace

std::vector<Token> FrequentTokens(const Tokenizer& tokenizer, int n, std::string_view sample) {
  const int vocabulary = tokenizer.vocabulary_size();
  const auto wanted = static_cast<std::size_t>(std::min(n, vocabulary));
  std::vector<bool> taken(static_cast<std::size_t>(vocabulary));
  std::vector<Token> tokens;
  const auto take = [&](Token token) {
    if (tokens.size() == wanted || taken[static_cast<std::size_t>(token)]) return;
    taken[static_cast<std::size_t>(token)] = true;
    tokens.push_back(token);
  };
  for (const Token token : tokenizer.end_tokens()) take(token);
  for (const Token token : ByFrequency(tokenizer, sample)) take(token);
  for (Token token = 0; token < vocabulary; ++token)
    if (IsOneAsciiCharacter(tokenizer, token)) take(token);
  for (Token token = 0; token < vocabulary; ++token) take(token);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace foretoken::text
