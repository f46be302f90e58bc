// SPDX-License-Identifier: Apache-2.0
#include "model/network.h"

#include <gtest/gtest.h>

namespace foretoken::model {
namespace {

// A block that writes the name of its only phase, and the number of barriers before it, to a text.
struct Noted {
  char name;
  std::string* text;
  void Run(const Pass&, int) const noexcept { *text += name; }
};

bool Never(const Pass&) {
  return false;
}

// '|' stands for a barrier.
std::string Walked(std::vector<std::pair<char, Split>> phases, char unwanted = 0) {
  std::string text;
  std::vector<Noted> blocks;
  for (const auto& [name, split] : phases) blocks.push_back({name, &text});
  std::vector<Phase> list;
  for (std::size_t i = 0; i < phases.size(); ++i)
    list.push_back(PhaseOf<&Noted::Run>(blocks[i], phases[i].second,
                                        phases[i].first == unwanted ? Never : nullptr));
  Walk(list, {}, 0, [&] { text += '|'; });
  return text;
}

TEST(Walk, PutsABarrierBetweenPhasesUnlessBothAreDividedByRows) {
  const Split rows = Split::kRows, other = Split::kOther;
  EXPECT_EQ(
      Walked({{'a', rows}, {'b', rows}, {'c', other}, {'d', other}, {'e', rows}, {'f', rows}}),
      "ab|c|d|ef");
  EXPECT_EQ(Walked({{'a', other}, {'b', rows}}), "a|b");
  EXPECT_EQ(Walked({{'a', other}}), "a");
}

TEST(Walk, LeavesOutWhatThePassDoesNotWant) {
  const Split rows = Split::kRows, other = Split::kOther;
  EXPECT_EQ(Walked({{'a', rows}, {'b', other}, {'c', rows}}, 'b'), "ac");
  EXPECT_EQ(Walked({{'a', other}, {'b', rows}, {'c', other}}, 'b'), "a|c");
  EXPECT_EQ(Walked({{'a', other}, {'b', rows}}, 'b'), "a");
}

}  // namespace
}  // namespace foretoken::model
