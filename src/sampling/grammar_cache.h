// SPDX-License-Identifier: Apache-2.0
// sampling/grammar_cache.h: the grammars of the last requests, with what they have learnt of the
// vocabulary: requests of one grammar share it, at once and one after the other.
//
// Not for several threads at once; the grammars are.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "foretoken/result.h"
#include "sampling/grammar.h"
#include "sampling/token_trie.h"

namespace foretoken::sampling {

class GrammarCache {
 public:
  static constexpr std::size_t kMost = 16;                          // grammars
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;  // of all of them

  GrammarCache(std::shared_ptr<const TokenTrie> vocabulary, Grammar::Cut cut,
               std::size_t max_bytes = kMaxBytes);

  // The one that was kept, or a new one. Errors: as Grammar::Compile; nothing is kept then.
  [[nodiscard]] Result<std::shared_ptr<const Grammar>> Get(std::string_view gbnf);

 private:
  struct Entry {
    std::string gbnf;
    std::shared_ptr<const Grammar> grammar;
  };
  void DropOldest();

  std::shared_ptr<const TokenTrie> vocabulary_;
  Grammar::Cut cut_;
  std::size_t max_bytes_;
  std::list<Entry> entries_;  // the latest first
};

}  // namespace foretoken::sampling
