// SPDX-License-Identifier: Apache-2.0
// draft/lookup/ngram_index.h: where each n-gram of a growing text occurred: for one n, chains of end
// positions from the latest back. An n-gram of one salt is another one than the same tokens of
// another salt, so a look-up takes no step among the texts of others.
//
// Begin allocates; nothing else does. Add and Last cost a hash look-up, Before an array access.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace foretoken::draft {

class NgramIndex {
 public:
  // Forgets everything and makes room for a text of max_tokens.
  void Begin(int n, int max_tokens);
  struct Text {
    std::span<const Token> tokens;
    std::span<const SaltId> salts = {};  // of each token; empty: kNoSalt
    SaltId SaltAt(std::size_t i) const { return salts.empty() ? kNoSalt : salts[i]; }
  };
  // The n-gram that ends at the text's last token has now occurred there. The text grows by a token
  // or more between calls, and what it held stays. REQUIRES: its last n tokens have one salt.
  void Add(const Text& text) noexcept;
  // The latest end position of this n-gram (of n tokens) in the text, -1 if it never occurred.
  int Last(std::span<const Token> ngram, SaltId salt, const Text& text) const noexcept;
  // The occurrence before the one that ends at `position`, -1 if that was the first.
  int Before(int position) const noexcept { return before_[static_cast<std::size_t>(position)]; }

 private:
  std::size_t Slot(std::span<const Token> ngram, SaltId salt, const Text& text) const noexcept;

  int n_ = 0;
  std::vector<std::int32_t> slots_;  // end position + 1 of the latest occurrence; 0 = free. A power
                                     // of two, at most half full
  std::vector<std::int32_t> before_;  // [max_tokens]
};

}  // namespace foretoken::draft
