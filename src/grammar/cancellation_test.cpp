// SPDX-License-Identifier: Apache-2.0
#include "base/cancellation_testing.h"

#include "grammar/large_texts_testing.h"

namespace foretoken::grammar {
namespace {

TEST(Cancellation, EndsWhateverIsCompiled) {
  for (const LargeText& text : LargeTexts())
    ExpectEndsWhenCancelled(text.name, text.least_work, text.compile);
}

TEST(Cancellation, LeavesNothingIncompleteBehind) {
  const std::string text = "root ::= ([a-z]{0,300} | [a-y]{0,300} | [a-x]{0,300})*";
  GrammarCache cache(Words(4000), {});
  const auto get = [&] { return StatusOf(cache.Get(text)); };
  const std::size_t n =
      QuestionsOf([&] { return StatusOf(GrammarCache(Words(4000), {}).Get(text)); });
  ASSERT_FALSE(RunUntil(n / 2, get).has_value());
  EXPECT_TRUE(get().has_value());
}

}  // namespace
}  // namespace foretoken::grammar
