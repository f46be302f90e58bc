// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/byte_pairs.h: where a text may be cut before its symbols merge.
//
// A merge can only join two bytes that are adjacent in some token, and with ranked merges only where
// the two pieces of a merge meet. So a text is cut wherever no such bytes are (in most vocabularies
// before every space), and each part is encoded alone: the result is the same, and the heap of the
// merges stays small. SentencePiece's space mark, three bytes, counts as one: its first byte begins
// quotation marks and dashes, too, which tokens have inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/work_count.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {

class BytePairs {
 public:
  // Two neighbours that merge.
  void Add(std::string_view left, std::string_view right) {
    if (left.empty() || right.empty()) return;
    Set(Index(left.ends_with(kSpaceMark) ? ' ' : left.back(), First(right.data(), right.size())));
  }
  // A token, any two parts of which may merge.
  void Add(std::string_view token) {
    const char* at = token.data();
    const char* const end = at + token.size();
    for (char left = 0; at < end;) {
      const char right = First(at, static_cast<std::size_t>(end - at));
      if (at > token.data()) Set(Index(left, right));
      at += right == *at ? 1 : kSpaceMark.size();
      left = right;
    }
  }

  // Bytes from the text's beginning to the first cut, which is at a character's end. A text without
  // one is cut where its symbols could not be counted with 32 bits. REQUIRES: the text is not empty.
  std::size_t JoinedSize(std::string_view text) const {
    std::size_t end = 0;
    char left = 0, right = First(text.data(), text.size());
    do {
      CountWork();
      const bool mark = right != text[end];
      end += mark ? kSpaceMark.size() : SizeOfCharacter(text, end);
      if (end == text.size() || end >= kMaxJoined) break;
      left = mark ? ' ' : text[end - 1];
      right = First(text.data() + end, text.size() - end);
    } while (Has(Index(left, right)));
    return end;
  }

 private:
  static constexpr std::size_t kMaxJoined = std::size_t{1} << 28;

  // The first byte of a text that is not empty, a space if a mark begins it. Inline, as -O1 would make it
  // a call.
  [[gnu::always_inline]] static char First(const char* text, std::size_t size) {
    const bool mark =
        *text == kSpaceMark[0] && std::string_view(text, size).starts_with(kSpaceMark);
    return mark ? ' ' : *text;
  }
  [[gnu::always_inline]] static unsigned Index(char left, char right) {
    return static_cast<unsigned>(static_cast<unsigned char>(left)) << 8 |
           static_cast<unsigned char>(right);
  }
  [[gnu::always_inline]] void Set(unsigned index) {
    bits_[index / 64] |= std::uint64_t{1} << index % 64;
  }
  [[gnu::always_inline]] bool Has(unsigned index) const {
    return (bits_[index / 64] >> index % 64 & 1) != 0;
  }

  std::uint64_t bits_[65536 / 64] = {};
};

}  // namespace foretoken::text
