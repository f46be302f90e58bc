// SPDX-License-Identifier: Apache-2.0
// Vocabularies come from files. Pieces and merges that were chosen to collide in the tables of a
// tokenizer cost it no more than others.

#include "base/chosen_keys_testing.h"
#include "base/growth_testing.h"
#include "text/tokenizer/encode/merge_rules.h"
#include "text/tokenizer/encode/string_table.h"

namespace foretoken::text {
namespace {

constexpr Sizes kKeys = {256, 2048};
constexpr std::size_t kWindow = 4;

// Texts of 8 bytes whose hashes, before they were seeded, ended in the same 20 bits.
std::vector<std::string> CollidingPieces(std::size_t n) {
  constexpr std::uint64_t kInverse = InverseOf(0x9E3779B97F4A7C15u);
  const auto unmixed = [](std::uint64_t x) { return WithoutShift(x, 29) * kInverse; };
  std::vector<std::string> pieces;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t word = unmixed(unmixed(unmixed(i << 20))) ^ 8;
    pieces.emplace_back(reinterpret_cast<const char*>(&word), sizeof word);
  }
  return pieces;
}

TEST(TokenizerTableGrowth, CollidingPiecesAreFoundAsFastAsOthers) {
  ExpectLinear("pieces", kKeys, [](std::size_t n) {
    return [pieces = CollidingPieces(n)] {
      StringTable table;
      for (const std::string& piece : pieces) table.Insert(piece, 1);
    };
  });
}

// Pairs that share places of a table for n merges.
std::vector<std::pair<std::int32_t, std::int32_t>> CollidingPairs(std::size_t n) {
  std::size_t n_slots = 16;
  while (n_slots < 2 * n) n_slots *= 2;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  std::uint64_t right = 0;
  for (std::uint64_t left = 0; left < n; ++left, ++right) {
    right = NextInWindow(right, n_slots - 1, kWindow, [left](std::uint64_t r) {
      const std::uint64_t hash = (left << 32 | r) * 0x9E3779B97F4A7C15u;
      return hash ^ hash >> 32;
    });
    pairs.emplace_back(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right));
  }
  return pairs;
}

TEST(TokenizerTableGrowth, CollidingMergesAreFoundAsFastAsOthers) {
  ExpectLinear("merges", kKeys, [](std::size_t n) {
    return [n, pairs = CollidingPairs(n)] {
      MergeTable table(n);
      for (const auto& [left, right] : pairs) table.Insert(left, right, {1, 1});
    };
  });
}

}  // namespace
}  // namespace foretoken::text
