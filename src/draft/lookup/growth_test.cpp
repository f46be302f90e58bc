// SPDX-License-Identifier: Apache-2.0
// Texts come from clients. Tokens that were chosen to collide in a table of a drafter cost it no
// more than others, or one client's text would stop the engine's thread for all.

#include <bit>

#include "base/chosen_keys_testing.h"
#include "base/growth_testing.h"
#include "draft/lookup/ngram_index.h"
#include "draft/lookup/suffix_automaton.h"

namespace foretoken::draft {
namespace {

using Tokens = std::vector<Token>;
constexpr Sizes kTexts = {256, 2048};
constexpr std::size_t kWindow = 4;  // places that the keys share

// What the index of n-grams mixed a text's tokens into before its hashes were seeded.
std::uint64_t KnownNgramHash(const Token* tokens, int n) {
  std::uint64_t h = 0x9E3779B97F4A7C15u;
  for (int i = 0; i < n; ++i) {
    h = (h ^ static_cast<std::uint32_t>(tokens[i])) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

// A text whose 3-grams all fall into one place of a table for it.
Tokens CollidingNgrams(std::size_t n) {
  const std::size_t mask = std::bit_ceil(2 * n + 2) - 1;
  Tokens text = {1, 2};
  while (text.size() < n) {
    Token key[3] = {text[text.size() - 2], text.back(), 0};
    const auto found = NextInWindow(3, mask, kWindow, [&](std::uint64_t token) {
      key[2] = static_cast<Token>(token);
      return KnownNgramHash(key, 3);
    });
    text.push_back(static_cast<Token>(found));
  }
  return text;
}

TEST(LookupGrowth, CollidingNgramsAreFoundAsFastAsOthers) {
  ExpectLinear("3-grams", kTexts, [](std::size_t n) {
    return [n, text = CollidingNgrams(n)] {
      NgramIndex index;
      index.Begin(3, static_cast<int>(n));
      const std::span<const Token> all(text);
      for (std::size_t i = 1; i <= n; ++i) index.Add({.tokens = all.first(i)});
    };
  });
}

std::uint64_t KnownEdgeHash(std::int32_t from, std::uint64_t token) {
  const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 |
                            static_cast<std::uint32_t>(token);
  const std::uint64_t h = (key ^ key >> 29) * 0xD6E8FEB86659FD93u;
  return h ^ h >> 32;
}

// A text of different tokens: token i leads from state i to state i + 1.
Tokens CollidingEdges(std::size_t n) {
  const std::size_t mask = std::bit_ceil(4 * n + 16) - 1;
  Tokens text;
  std::uint64_t token = 1;
  for (std::size_t i = 0; i < n; ++i, ++token) {
    token = NextInWindow(token, mask, kWindow, [&](std::uint64_t t) {
      return KnownEdgeHash(static_cast<std::int32_t>(i), t);
    });
    text.push_back(static_cast<Token>(token));
  }
  return text;
}

TEST(LookupGrowth, CollidingEdgesOfAnAutomatonAreFoundAsFastAsOthers) {
  ExpectLinear("edges", kTexts, [](std::size_t n) {
    return [n, text = CollidingEdges(n)] {
      SuffixAutomaton automaton;
      automaton.Reserve(static_cast<int>(n));
      for (const Token token : text) automaton.Add(token);
    };
  });
}

}  // namespace
}  // namespace foretoken::draft
