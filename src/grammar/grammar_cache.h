// SPDX-License-Identifier: Apache-2.0
// grammar/grammar_cache.h: keeps the grammars of running and of recent requests, with what they
// have learned about the vocabulary. Requests with the same grammar share it.
//
// It knows every grammar in use, so that the memory of all of them is bounded. It drops a grammar
// that nobody uses to make room; a grammar in use forgets its states (Grammar::Trim), and its texts
// find theirs again.
//
// Any thread. A grammar is compiled outside of the lock, so nobody waits for another one's.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "foretoken/result.h"
#include "grammar/grammar.h"
#include "grammar/token_trie.h"

namespace foretoken::grammar {

class GrammarCache {
 public:
  // Grammars that nobody uses.
  static constexpr std::size_t kMostIdle = 16;
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;  // all grammars together

  GrammarCache(std::shared_ptr<const TokenTrie> vocabulary, Grammar::Cut cut,
               std::size_t max_bytes = kMaxBytes);

  // The kept grammar, or a new one. Errors: as Grammar::Compile; kNoMemory if those in use leave no
  // room for another; then nothing is kept.
  [[nodiscard]] Result<std::shared_ptr<const Grammar>> Get(std::string_view gbnf);

  // All grammars together take at most so many bytes from now on; further ones are refused until they do.
  void Limit(std::size_t max_bytes) noexcept;

  // Grammars grow while they are used; this brings their memory below the limit again. Cheap if it
  // is below.
  void Bound() noexcept;

  // Memory of all grammars and their texts.
  std::size_t bytes() const noexcept;

 private:
  struct Entry {
    std::string gbnf;
    std::shared_ptr<const Grammar> grammar;

    bool idle() const { return grammar.use_count() == 1; }
    std::size_t bytes() const { return gbnf.capacity() + grammar->bytes(); }
  };
  std::shared_ptr<const Grammar> Find(std::string_view gbnf);
  std::size_t SumOfBytes() const noexcept;
  void DropIdle() noexcept;
  std::size_t TrimLargest() noexcept;

  const std::shared_ptr<const TokenTrie> vocabulary_;
  const Grammar::Cut cut_;
  mutable std::mutex mutex_;
  std::size_t max_bytes_;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace foretoken::grammar
