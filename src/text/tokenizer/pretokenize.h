// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/pretokenize.h: cuts text into the words within which byte-level BPE merges.
//
// tokenizer.ggml.pre decides the words. Each name stands for one or more regular expressions,
// applied in turn, each to the parts that the one before left. Text that an expression does not
// match is a part too, so nothing is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace foretoken::text {

struct Pattern {
  std::span<const std::string_view> stages;
  bool known = true;           // false: an unknown name, replaced by the default pattern
  bool ignore_merges = false;  // a word that is a token becomes one without merges
  bool add_bos = false;        // the family's default if the file has no setting
};

// The pattern for a value of tokenizer.ggml.pre; empty means "default".
Pattern FindPattern(std::string_view name);

// Immutable; any thread may use it.
class Pretokenizer {
 public:
  explicit Pretokenizer(const Pattern& pattern);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // The words' lengths in bytes; they add up to text.size(). Bytes that are not UTF-8 count as
  // symbols (as U+FFFD would).
  std::vector<std::uint32_t> Split(std::string_view text) const;

 private:
  struct Stage;
  std::vector<std::unique_ptr<Stage>> stages_;
};

}  // namespace foretoken::text
