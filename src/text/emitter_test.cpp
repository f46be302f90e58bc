// SPDX-License-Identifier: Apache-2.0
#include "text/emitter.h"

#include <gtest/gtest.h>

#include "text/fake_tokenizer_testing.h"

namespace foretoken::text {
namespace {

constexpr int kVocabulary = 26;

// What an emitter showed, token by token, and why it ended.
struct Shown {
  std::vector<std::string> parts;
  std::optional<FinishReason> ended;

  std::string all() const {
    std::string text;
    for (const std::string& part : parts) text += part;
    return text;
  }
};

// Pushes the tokens of `text` until the emitter ends.
Shown PushAll(Emitter& emitter, std::string_view text) {
  Shown shown;
  for (const char c : text) {
    shown.ended = emitter.Push(c - 'a', shown.parts.emplace_back());
    if (shown.ended) break;
  }
  return shown;
}

class EmitterTest : public testing::Test {
 protected:
  Emitter Make(const std::vector<std::string>& stops, int limit = 100,
               const std::vector<Token>& ends = {}) const {
    return Emitter(tokenizer_, stops, ends, limit);
  }

  FakeTokenizer tokenizer_{kVocabulary};
};

TEST_F(EmitterTest, GoesOnBehindTokensThatWereShownElsewhere) {
  Emitter emitter = Make({"cde"}, 6);
  emitter.GoOnBehind(std::vector<Token>{0, 1, 2});  // "ab" was shown, and "c" was held back
  EXPECT_EQ(emitter.tokens_left(), 3);
  EXPECT_EQ(PushAll(emitter, "dx").all(), "cdx");
  EXPECT_EQ(PushAll(emitter, "y").ended, FinishReason::kLength);
  EXPECT_EQ(emitter.TakeText(), "cdxy");
  Emitter stops = Make({"cde"});
  stops.GoOnBehind(std::vector<Token>{0, 1, 2, 3});
  EXPECT_EQ(PushAll(stops, "e").ended, FinishReason::kStop);
  EXPECT_EQ(stops.TakeText(), "");
  Emitter ends_elsewhere = Make({"cde"});
  PushAll(ends_elsewhere, "abc");
  ends_elsewhere.DropHeldBack();
  EXPECT_EQ(ends_elsewhere.TakeText(), "ab");
}

TEST_F(EmitterTest, ShowsEachTokenAtOnceWithoutStopStrings) {
  Emitter emitter = Make({});
  const Shown shown = PushAll(emitter, "abc");
  EXPECT_EQ(shown.parts, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(shown.ended);
  EXPECT_EQ(emitter.text(), "abc");
  EXPECT_EQ(emitter.n_tokens(), 3);
  EXPECT_EQ(emitter.tokens_left(), 97);
}

// Letter z is a control token; the letters of "é" are bytes.
class ControlLetters : public FakeTokenizer {
 public:
  ControlLetters() : FakeTokenizer(kVocabulary) {}
  bool IsControl(Token token) const override { return token == 25; }
  std::string Piece(Token token, bool special) const override {
    if (IsControl(token)) return special ? "<z>" : "";
    return token == 24 ? "\xC3" : token == 23 ? "\xA9" : FakeTokenizer::Piece(token, special);
  }
};

TEST(EmitterOfControlTokens, ShowsThemAsTheRequestWants) {
  const ControlLetters tokenizer;
  const std::pair<ControlTexts, const char*> cases[] = {
      {ControlTexts::kNone, "abé"},
      {ControlTexts::kPlain, "a<z>b\xEF\xBF\xBD<z>\xEF\xBF\xBD"},
      {ControlTexts::kMarked,
       "a\xFF<z>\xFE"
       "b\xEF\xBF\xBD\xFF<z>\xFE\xEF\xBF\xBD"}};
  for (const auto& [control, text] : cases) {
    Emitter emitter(tokenizer, {}, {}, 100, control);
    Shown shown = PushAll(emitter, "azbyzx");
    emitter.Flush(shown.parts.emplace_back());
    EXPECT_EQ(shown.all(), text);
    EXPECT_EQ(emitter.text(), text);
  }
  Emitter ends(tokenizer, {}, std::vector<Token>{25}, 100, ControlTexts::kPlain);
  EXPECT_EQ(PushAll(ends, "abz").all(), "ab");
}

TEST_F(EmitterTest, EndsWithTheLastTokenOfItsLimit) {
  Emitter emitter = Make({}, 3);
  const Shown shown = PushAll(emitter, "abcdef");
  EXPECT_EQ(shown.all(), "abc");
  EXPECT_EQ(shown.ended, FinishReason::kLength);
  EXPECT_EQ(emitter.tokens_left(), 0);
}

TEST_F(EmitterTest, AnEndTokenEndsTheTextAndIsNotShown) {
  Emitter emitter = Make({}, 100, {25, 3});
  const Shown shown = PushAll(emitter, "abcdef");
  EXPECT_EQ(shown.all(), "abc");
  EXPECT_EQ(shown.ended, FinishReason::kStop);
  EXPECT_EQ(emitter.n_tokens(), 4);
}

TEST_F(EmitterTest, AnEndTokenAtTheLimitIsAStop) {
  Emitter emitter = Make({}, 4, {3});
  EXPECT_EQ(PushAll(emitter, "abcd").ended, FinishReason::kStop);
}

TEST_F(EmitterTest, HoldsBackWhatMayBeginAStopString) {
  Emitter emitter = Make({"cde"});
  const Shown shown = PushAll(emitter, "abcdx");
  EXPECT_EQ(shown.parts, (std::vector<std::string>{"a", "b", "", "", "cdx"}));
  EXPECT_EQ(emitter.text(), "abcdx");
}

TEST_F(EmitterTest, CutsTheTextAtAStopString) {
  Emitter emitter = Make({"cde"});
  const Shown shown = PushAll(emitter, "abcdefgh");
  EXPECT_EQ(shown.all(), "ab");
  EXPECT_EQ(shown.ended, FinishReason::kStop);
  EXPECT_EQ(emitter.text(), "ab");
  EXPECT_EQ(emitter.n_tokens(), 5);
}

TEST_F(EmitterTest, TheEarliestOfSeveralStopStringsCounts) {
  // "bcd" and "d" both end with the fourth token; the one that begins first cuts the text.
  Emitter emitter = Make({"d", "bcd"});
  const Shown shown = PushAll(emitter, "abcd");
  EXPECT_EQ(shown.all(), "a");
  EXPECT_EQ(shown.ended, FinishReason::kStop);
}

TEST_F(EmitterTest, HoldsBackTheLongestBeginning) {
  Emitter emitter = Make({"bx", "abcy"});
  Shown shown = PushAll(emitter, "ab");
  EXPECT_EQ(shown.all(), "");  // "ab" may begin "abcy", and "b" may begin "bx"
  shown = PushAll(emitter, "z");
  EXPECT_EQ(shown.all(), "abz");
}

TEST_F(EmitterTest, AStopStringThatOverlapsItselfIsFound) {
  Emitter emitter = Make({"aab"});
  const Shown shown = PushAll(emitter, "aaab");
  EXPECT_EQ(shown.all(), "a");
  EXPECT_EQ(shown.ended, FinishReason::kStop);
}

TEST_F(EmitterTest, FlushGivesWhatWasHeldBack) {
  Emitter emitter = Make({"cde"});
  EXPECT_EQ(PushAll(emitter, "abcd").all(), "ab");
  std::string rest;
  emitter.Flush(rest);
  EXPECT_EQ(rest, "cd");
  emitter.Flush(rest);
  EXPECT_EQ(rest, "cd");  // nothing is given twice
  EXPECT_EQ(emitter.TakeText(), "abcd");
}

TEST_F(EmitterTest, TheLimitGivesWhatWasHeldBack) {
  Emitter emitter = Make({"cde"}, 4);
  const Shown shown = PushAll(emitter, "abcd");
  EXPECT_EQ(shown.all(), "abcd");
  EXPECT_EQ(shown.ended, FinishReason::kLength);
}

// A tokenizer whose tokens are single bytes of a character of two bytes.
class ByteTokenizer : public FakeTokenizer {
 public:
  ByteTokenizer() : FakeTokenizer(2) {}
  std::string Piece(Token token, bool) const override { return token == 0 ? "\xc3" : "\xa9"; }
};

TEST(Emitter, ShowsNoHalfCharacter) {
  const ByteTokenizer tokenizer;
  Emitter emitter(tokenizer, {}, {}, 10);
  std::string shown;
  emitter.Push(0, shown);
  EXPECT_EQ(shown, "");
  emitter.Push(1, shown);
  EXPECT_EQ(shown, "\xc3\xa9");
  emitter.Push(0, shown);
  emitter.Flush(shown);
  EXPECT_EQ(shown, "\xc3\xa9\xef\xbf\xbd");  // the half that is left becomes U+FFFD
}

}  // namespace
}  // namespace foretoken::text
