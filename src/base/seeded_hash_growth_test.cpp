// SPDX-License-Identifier: Apache-2.0
// Keys that were chosen to collide under a known hash cost a table with seeded hashes no more than
// others.

#include <unordered_map>

#include "base/chosen_keys_testing.h"
#include "base/growth_testing.h"
#include "base/seeded_hash.h"

namespace foretoken {
namespace {

template <typename Table>
double ExponentOfInsertions() {
  return InstructionExponent({256, 2048}, [](std::size_t n) {
    return [texts = TextsWithOneStandardHash(n)] {
      Table table;
      for (const std::string& text : texts) table.emplace(text, 0);
    };
  });
}

TEST(SeededHashGrowth, ChosenKeysCostNoMoreThanOthers) {
  using Seeded = std::unordered_map<std::string, int, SeededHasher>;
  EXPECT_LE(ExponentOfInsertions<Seeded>(), kMostLinear);
}

// The negative control: the keys are what they are meant to be.
TEST(SeededHashGrowth, ChosenKeysAreQuadraticWithTheStandardHash) {
  using Standard = std::unordered_map<std::string, int>;
  EXPECT_GT(ExponentOfInsertions<Standard>(), 1.7);
}

}  // namespace
}  // namespace foretoken
