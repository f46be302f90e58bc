// SPDX-License-Identifier: Apache-2.0
// engine/requests/slot_texts.h: the newest text that ended in each slot (Engine::SaveSlot). All memory is
// taken in the constructor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/block_key.h"

namespace foretoken::engine {

class SlotTexts {
 public:
  struct Text {
    std::vector<Token> tokens = {};
    SaltId salt = kNoSalt;
    kv::BlockKey owner = {};  // RootKey of the salt
  };
  explicit SlotTexts(int n_slots = 0, int most_tokens = 0)
      : texts_(static_cast<std::size_t>(n_slots)) {
    for (Text& text : texts_) text.tokens.reserve(static_cast<std::size_t>(most_tokens));
  }

  int size() const { return static_cast<int>(texts_.size()); }
  Text& At(int slot) { return texts_[static_cast<std::size_t>(slot)]; }
  void Note(int slot, std::span<const Token> tokens, SaltId salt,
            const kv::BlockKey& owner) noexcept {
    Text& text = At(slot);
    tokens = tokens.first(std::min(tokens.size(), text.tokens.capacity()));
    text.tokens.assign(tokens.begin(), tokens.end());
    text.salt = salt, text.owner = owner;
  }

 private:
  std::vector<Text> texts_;
};

}  // namespace foretoken::engine
