// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/byte_pairs.h: where a text may be cut before its symbols merge.
//
// A merge can only join two bytes that are adjacent in some token. So a text is cut wherever they
// are not (in most vocabularies before every space), and each part is encoded alone: the result is
// the same, and the heap of the merges stays small.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

namespace foretoken::text {

class BytePairs {
 public:
  void Add(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) pairs_.set(Index(text[i - 1], text[i]));
  }
  bool Has(char left, char right) const { return pairs_.test(Index(left, right)); }

 private:
  static std::size_t Index(char left, char right) {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 |
           static_cast<unsigned char>(right);
  }
  std::bitset<65536> pairs_;
};

}  // namespace foretoken::text
