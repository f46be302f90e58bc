// SPDX-License-Identifier: Apache-2.0
#include "sampling/grammar_cache.h"

#include <algorithm>
#include <utility>

namespace foretoken::sampling {

GrammarCache::GrammarCache(std::shared_ptr<const TokenTrie> vocabulary, Grammar::Cut cut,
                           std::size_t max_bytes)
    : vocabulary_(std::move(vocabulary)), cut_(std::move(cut)), max_bytes_(max_bytes) {}

Result<std::shared_ptr<const Grammar>> GrammarCache::Get(std::string_view gbnf) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return e.gbnf == gbnf; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    FORETOKEN_TRY(auto grammar, Grammar::Compile(gbnf, vocabulary_, cut_));
    entries_.push_front({std::string(gbnf), std::move(grammar)});
  }
  auto grammar = entries_.front().grammar;
  DropOldest();
  return grammar;
}

// Grammars grow while they are used, so one that is too large by itself is made anew the next time.
void GrammarCache::DropOldest() {
  std::size_t bytes = 0, n = 0;
  const auto fits = [&](const Entry& e) {
    bytes += e.gbnf.size() + e.grammar->bytes();
    return ++n <= kMost && bytes <= max_bytes_;
  };
  entries_.erase(std::find_if_not(entries_.begin(), entries_.end(), fits), entries_.end());
}

}  // namespace foretoken::sampling
