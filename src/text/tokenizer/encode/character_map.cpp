// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/encode/character_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::text {
namespace {

constexpr std::size_t kWord = 4;
// Longer sequences are not searched: a damaged trie may lead round in circles.
constexpr std::size_t kMaxSequence = 256;
constexpr std::uint32_t kEndsHere = 1u << 8;

std::uint32_t WordAt(const std::vector<std::int64_t>& bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = kWord; i-- > 0;) {
    word = word << 8 | (static_cast<std::uint32_t>(bytes[at + i]) & 0xFF);
  }
  return word;
}

// Where an entry's children are, as a number that is combined with their place by XOR.
std::uint32_t Offset(std::uint32_t entry) {
  return entry >> 10 << ((entry & 1u << 9) >> 6);
}

}  // namespace

Result<CharacterMap> CharacterMap::Read(const std::vector<std::int64_t>& bytes) {
  const auto damaged = [](std::string_view why) {
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("tokenizer: tokenizer.ggml.precompiled_charsmap {}; the file is "
                            "damaged, convert the model anew",
                            why));
  };
  const bool all_bytes =
      std::all_of(bytes.begin(), bytes.end(), [](std::int64_t b) { return b >= -128 && b <= 255; });
  if (!all_bytes) return damaged("has numbers that are no bytes");
  if (bytes.size() < kWord) return damaged("is shorter than its header");
  const std::size_t trie_bytes = WordAt(bytes, 0);
  if (trie_bytes % kWord != 0 || trie_bytes == 0)
    return damaged("has a trie of a part of an entry");
  if (trie_bytes >= bytes.size() - kWord) return damaged("ends inside its trie");
  CharacterMap map;
  for (std::size_t at = kWord; at < kWord + trie_bytes; at += kWord) {
    map.trie_.push_back(WordAt(bytes, at));
  }
  for (std::size_t at = kWord + trie_bytes; at < bytes.size(); ++at) {
    map.replacements_.push_back(static_cast<char>(bytes[at]));
  }
  if (map.replacements_.back() != '\0') return damaged("has a replacement without an end");
  return map;
}

CharacterMap::Match CharacterMap::Find(std::string_view text) const {
  Match match;
  if (trie_.empty()) return match;
  std::uint32_t at = Offset(trie_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), kMaxSequence); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    constexpr std::uint32_t kLabel = 0x800000FFu;
    if (byte == 0 || at >= trie_.size() || (trie_[at] & kLabel) != byte) break;
    const bool ends = (trie_[at] & kEndsHere) != 0;
    at ^= Offset(trie_[at]);
    if (!ends) continue;
    const std::size_t place = at < trie_.size() ? trie_[at] & 0x7FFFFFFFu : replacements_.size();
    if (place >= replacements_.size()) break;  // a damaged trie
    match = {i + 1, replacements_.c_str() + place};
  }
  return match;
}

}  // namespace foretoken::text
