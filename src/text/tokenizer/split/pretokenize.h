// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/split/pretokenize.h: cuts text into the words within which byte-level BPE merges.
//
// tokenizer.ggml.pre decides the words. Each name stands for one or more regular expressions,
// applied in turn, each to the parts that the one before left. Text that an expression does not
// match is a part too, so nothing is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer/split/patterns.h"

namespace foretoken::text {

// Immutable; any thread may use it.
class Pretokenizer {
 public:
  // exact: use the expressions that the model's authors published, where they differ.
  explicit Pretokenizer(const SplitRules& rules, bool exact = false);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // The words' lengths in bytes; they add up to text.size(). Bytes that are not UTF-8 count as
  // symbols (as U+FFFD would).
  std::vector<std::uint32_t> Split(std::string_view text) const;

 private:
  struct Stage;
  struct Zones;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<Zones> zones_;  // null if the rules name none
};

}  // namespace foretoken::text
