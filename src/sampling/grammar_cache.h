// SPDX-License-Identifier: Apache-2.0
// sampling/grammar_cache.h: the grammars of running and of the last requests, with what they have
// learnt of the vocabulary: requests of one grammar share it, at once and one after the other.
//
// It knows every grammar that somebody uses, so that the memory of all of them is bounded. One that
// nobody uses is dropped for a later one; one in use forgets its states (Grammar::Trim), and its
// texts find theirs again.
//
// Any thread. A grammar is compiled outside of the lock: nobody waits for another one's.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "foretoken/result.h"
#include "sampling/grammar.h"
#include "sampling/token_trie.h"

namespace foretoken::sampling {

class GrammarCache {
 public:
  static constexpr std::size_t kMostIdle = 16;                      // grammars that nobody uses
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;  // of all of them

  GrammarCache(std::shared_ptr<const TokenTrie> vocabulary, Grammar::Cut cut,
               std::size_t max_bytes = kMaxBytes);

  // The one that was kept, or a new one. Errors: as Grammar::Compile; kNoMemory where those in use
  // leave no room for another. Nothing is kept then.
  [[nodiscard]] Result<std::shared_ptr<const Grammar>> Get(std::string_view gbnf);

  // Whether it is this cache's, of this text.
  bool Made(const Grammar* grammar, std::string_view gbnf) const noexcept;

  // Grammars grow while they are used: this brings their memory under the bound again. Cheap where
  // it is under it.
  void Bound() noexcept;

  // Of all grammars and their texts.
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
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
};

}  // namespace foretoken::sampling
