// SPDX-License-Identifier: Apache-2.0
// grammar/words_testing.h: vocabularies of made-up words, for tests.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/token_trie.h"

namespace foretoken::grammar {

// Words like those of real vocabularies: the tokens' texts lead to as many states as there are.
inline std::shared_ptr<const TokenTrie> Words(std::size_t n) {
  std::mt19937 random(1);
  std::vector<std::string> texts;
  while (texts.size() < n) {
    std::string text;
    for (auto length = 1 + random() % 8; length > 0; --length)
      text += static_cast<char>('a' + random() % 26);
    texts.push_back(text);
  }
  return std::make_shared<const TokenTrie>(texts, std::vector<Token>{});
}

}  // namespace foretoken::grammar
