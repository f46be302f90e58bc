// SPDX-License-Identifier: Apache-2.0
#include "calls/control_tokens.h"

#include <gtest/gtest.h>

namespace foretoken::calls {
namespace {

TEST(ControlTokens, AreToldApartInMarks) {
  ControlTokens control;
  control.Add("<|c|>", 7);
  control.Add("<|c", 8);
  control.Add("<|c|>", 9);  // the first one counts
  EXPECT_TRUE(control.Has("<|c|>"));
  EXPECT_FALSE(control.Has("<|d|>"));
  EXPECT_EQ(control.InText("<|d|>"), "<|d|>");
  EXPECT_EQ(control.InText("<|c|>"), "\xFF<|c|>\xFE");
  EXPECT_EQ(control.InText("a<|c|>b<|c<|c|>"),
            "a\xFF<|c|>\xFE"
            "b\xFF<|c\xFE\xFF<|c|>\xFE");
  EXPECT_EQ(control.InGrammar("<|d|>\n"), "\"<|d|>\\n\"");
  EXPECT_EQ(control.InGrammar("a<|c|>b"), "\"a\" <[7]> \"b\"");
  EXPECT_EQ(control.InGrammar(""), "\"\"");
}

}  // namespace
}  // namespace foretoken::calls
