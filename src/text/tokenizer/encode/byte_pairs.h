// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/byte_pairs.h: where a text may be cut before its symbols merge.
//
// A merge can only join two bytes that are adjacent in some token. So a text is cut wherever they
// are not (in most vocabularies before every space), and each part is encoded alone: the result is
// the same, and the heap of the merges stays small. SentencePiece's space mark, three bytes, counts
// as one: its first byte begins quotation marks and dashes, too, which tokens have inside.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

#include "base/work_count.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {

class BytePairs {
 public:
  void Add(std::string_view text) {
    for (std::size_t at = 1; at < text.size(); ++at) pairs_.set(Index(text, at));
  }

  // Bytes from the text's beginning to the first cut, which is at a character's end. A text without
  // one is cut where its symbols could not be counted with 32 bits.
  std::size_t JoinedSize(std::string_view text) const {
    std::size_t end = 0;
    do {
      CountWork();
      end += SizeOfCharacter(text, end);
    } while (end < text.size() && end < kMaxJoined && pairs_.test(Index(text, end)));
    return end;
  }

 private:
  static constexpr std::size_t kMaxJoined = std::size_t{1} << 28;

  static std::size_t Index(std::string_view text, std::size_t at) {
    const auto left = static_cast<unsigned char>(text[at - 1]);
    const auto right = static_cast<unsigned char>(text[at]);
    const bool after_mark = left == 0x81 && text.substr(0, at).ends_with(kSpaceMark);
    const bool before_mark = right == 0xE2 && text.substr(at).starts_with(kSpaceMark);
    return static_cast<std::size_t>(after_mark ? ' ' : left) << 8 | (before_mark ? ' ' : right);
  }
  std::bitset<65536> pairs_;
};

}  // namespace foretoken::text
