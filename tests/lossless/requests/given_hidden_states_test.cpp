// SPDX-License-Identifier: Apache-2.0
// Heads draft behind hidden states of the caller's: what they draft within a request, bit for bit.
#include <gtest/gtest.h>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

struct HeadCase {
  const char* method;
  bool eagle, block;
};

std::unique_ptr<SpeculativeDecoder> OpenedHead(const HeadCase& head) {
  return MakeDecoder(HeadOptions({.eagle = head.eagle, .block = head.block}));
}

TEST(GivenHiddenStates, AHeadDraftsWhatItDraftsInARequest) {
  for (const HeadCase head :
       {HeadCase{"mtp", false, false}, {"eagle", true, false}, {"dflash", false, true}})
    for (const float temperature : {0.0f, 0.9f}) {
      const auto running = OpenedHead(head), given_decoder = OpenedHead(head);
      ASSERT_EQ(given_decoder->engine().summary().method, head.method);
      const HiddenStates rows = given_decoder->engine().summary().hidden_states;
      EXPECT_GT(rows.width, 0);
      EXPECT_EQ(rows.normed, std::string(head.method) == "mtp");
      const auto scorer = Got(Scorer::Create(PairOptions(), rows));
      Request request = Ask(30, temperature, 4, 4);
      request.sampling.frequency_penalty = 0.3f;
      GivenSampling given{.sampling = request.sampling, .seed = 4};
      ASSERT_TRUE(running->Begin(request));
      int drafted = 0;
      while (!running->done()) {
        const Completion so_far = running->completion();
        const Tokens text = WholeText(so_far);
        ASSERT_TRUE(scorer->Truncate(0, 0));
        ASSERT_TRUE(scorer->Score(std::span(text).first(text.size() - 1)));
        given.hidden_states = scorer->hidden_states();
        ASSERT_EQ(given.hidden_states.size(),
                  (text.size() - 1) * static_cast<std::size_t>(rows.width));
        given.n_generated = static_cast<int>(so_far.token_ids.size());
        const auto want = Got(running->Draft());
        const auto got = Got(
            given_decoder->Draft(text, given, {.num_steps = static_cast<int>(want.tokens.size())}));
        ASSERT_EQ(Tokens(got.tokens.begin(), got.tokens.end()),
                  Tokens(want.tokens.begin(), want.tokens.end()))
            << head.method;
        EXPECT_TRUE(SameBits(got.probabilities, want.probabilities));
        drafted += static_cast<int>(got.tokens.size());
        ASSERT_TRUE(running->Verify());
      }
      EXPECT_GT(drafted, 10) << head.method;
    }
}

TEST(GivenHiddenStates, SaysWhatCannotBe) {
  const auto decoder = OpenedHead({"mtp", false, false});
  const int width = decoder->engine().summary().hidden_states.width;
  const Tokens text = {1, 60, 61, 62};
  const std::vector<float> numbers(static_cast<std::size_t>(4 * width));
  GivenSampling given;
  EXPECT_FALSE(decoder->Draft(text, given));  // none
  given.hidden_states = numbers;              // one for the last token too
  EXPECT_FALSE(decoder->Draft(text, given));
  given.hidden_states = std::span(numbers).first(static_cast<std::size_t>(width) + 1);
  EXPECT_FALSE(decoder->Draft(text, given));
  given.hidden_states = std::span(numbers).first(static_cast<std::size_t>(2 * width));
  EXPECT_TRUE(decoder->Draft(text, given));  // the text begins there for it
  const auto block = OpenedHead({"dflash", false, true});
  const int wide = block->engine().summary().hidden_states.width;
  const std::vector<float> rows(static_cast<std::size_t>(3 * wide));
  given.hidden_states = std::span(rows).first(static_cast<std::size_t>(2 * wide));
  EXPECT_FALSE(block->Draft(text, given));  // a block drafter needs all
  given.hidden_states = rows;
  EXPECT_TRUE(block->Draft(text, given));
  const auto pair = MakeDecoder(PairOptions());
  EXPECT_EQ(pair->engine().summary().hidden_states.width, 0);
  EXPECT_FALSE(pair->Draft(text, given));
  EXPECT_FALSE(Scorer::Create(PairOptions(), {.layers = {99}}));
  const auto without = MakeScorer(PairOptions());
  ASSERT_TRUE(without->Score(text));
  EXPECT_TRUE(without->hidden_states().empty());
}

}  // namespace
}  // namespace foretoken
