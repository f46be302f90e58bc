// SPDX-License-Identifier: Apache-2.0
// Texts, tokens and templates come from clients and files, so the work on them must grow no
// faster than their size.
#include "base/growth_testing.h"

#include <algorithm>

#include "text/chat_template.h"
#include "text/tokenizer/split/patterns.h"
#include "text/tokenizer/split/pretokenize.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

constexpr Sizes kTextSizes = {2048, 8192};

// Texts that are hard for tokenizers. The last ones fit the vocabularies below.
constexpr const char* kParts[] = {"a",          " ",    "\n",    "7",       "!",        "\u00e9",
                                  "\U0001f600", "\xff", "\xe2",  "\u2581",  "A",        "aA",
                                  " a",         " \n",  "a's'S", "\u4e16a", "<s>",      "<s",
                                  "\r\n ",      "ab",   "abc",   "the ",    "<|x|><|x", "\x01"};

void ExpectLinearEncoding(const std::string& name,
                          const std::function<std::function<void()>(std::size_t)>& prepare) {
  foretoken::ExpectLinear(name, kTextSizes, prepare);
}

void ExpectLinearCoding(const std::string& name, const Tokenizer& tokenizer) {
  for (const char* const part : kParts)
    ExpectLinearEncoding(name + " encodes " + part, [&](std::size_t size) {
      return [&tokenizer, text = Repeated(part, size)] { Encode(tokenizer, text, true); };
    });
  std::string all;
  for (const char* const part : kParts) all += part;
  ExpectLinearEncoding(name + " decodes", [&](std::size_t size) {
    return [&tokenizer, tokens = Encode(tokenizer, Repeated(all, size), true)] {
      tokenizer.Decode(tokens, true);
    };
  });
}

const std::vector<TestToken> kSpecials = {{"<s>", 0, 3},   {"<|x|>", 0, 3}, {"<s", 0, 4},
                                          {"aaaa", 0, 4},  {"aaa", 0, 4},   {"aa", 0, 4},
                                          {"<|xx|>", 0, 3}};

TEST(TokenizerGrowth, SentencePiece) {
  std::vector<TestToken> tokens = {
      {"a", -1},       {"b", -2},    {"ab", -3},     {"abab", -4},
      {"aa", -5},      {"aaaa", -6}, {"\u2581", -7}, {"\u2581\u2581", -8},
      {"\u2581a", -9}, {"th", -10},  {"the", -11},   {"\u2581\u2581\u2581\u2581", -12}};
  ExpectLinearCoding("SentencePiece", *Load(SpmMetadata(tokens)));
  tokens.insert(tokens.end(), kSpecials.begin(), kSpecials.end());
  ExpectLinearCoding("SentencePiece with special tokens", *Load(SpmMetadata(tokens)));
}

TEST(TokenizerGrowth, ByteLevel) {
  const std::vector<std::string> merges = {"a a",  "aa aa",    "a b",           "ab ab",    "t h",
                                           "th e", "\u0120 a", "\u0120 \u0120", "aaaa aaaa"};
  ExpectLinearCoding("byte level", *Load(GptMetadata("llama-bpe", merges)));
  ExpectLinearCoding("byte level with special tokens",
                     *Load(GptMetadata("gpt-2", merges, kSpecials)));
}

TEST(TokenizerGrowth, CharacterBpe) {
  formats::Metadata metadata =
      SpmMetadata({{"a"}, {"b"}, {"\u2581"}, {"aa"}, {"aaaa"}, {"ab"}, {"\n\n"}, {"<s", 0, 4}});
  metadata.Set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.Set("tokenizer.ggml.merges",
               std::vector<std::string>{"a a", "aa aa", "a b", "\u2581 \u2581", "\u2581 a"});
  ExpectLinearCoding("character BPE", *Load(metadata));
}

TEST(TokenizerGrowth, Unigram) {
  std::vector<TestToken> tokens = {{"</s>", 0, 3}, {"<s>", 0, 3}, {"<unk>", 0, 2}};
  for (std::size_t size = 1; size <= 64; size *= 2) tokens.push_back({std::string(size, 'a'), -1});
  tokens.insert(tokens.end(), {{"\u2581", -2}, {"\u2581a", -3}, {"ab", -3}, {"<s", 0, 4}});
  formats::Metadata metadata = MakeMetadata("t5", tokens);
  ExpectLinearCoding("Unigram", *Load(metadata));
  metadata.Set("tokenizer.ggml.remove_extra_whitespaces", true);
  ExpectLinearCoding("Unigram that merges spaces", *Load(metadata));
}

TEST(TokenizerGrowth, WordPiece) {
  const auto tokenizer = Load(MakeMetadata(
      "bert", {{"\u2581a"}, {"a"}, {"aaaa"}, {"\u2581aaaaaaaa"}, {"b"}, {"<s>", 0, 3}}));
  ExpectLinearCoding("WordPiece", *tokenizer);
}

TEST(TokenizerGrowth, TextsAreComposed) {
  formats::Metadata metadata = GptMetadata("qwen2", {"a a"});
  metadata.Set("tokenizer.ggml.normalizer.nfc", true);
  const auto tokenizer = Load(metadata);
  ExpectLinearCoding("composing", *tokenizer);
  // Marks in an order that is not the canonical one, all on one letter.
  for (const char* const part : {"\u0301\u0323", "\u0323\u0301", "\u0301", "e\u0301", "\u1100"})
    ExpectLinearEncoding(std::string("composing ") + part, [&](std::size_t size) {
      return [&tokenizer, text = "e" + Repeated(part, size)] { Encode(*tokenizer, text); };
    });
}

TEST(TokenizerGrowth, LittleIsDoneForATextThatNobodyWants) {
  const auto tokenizer = Load(GptMetadata("llama-bpe", {"a a", "aa aa", "t h", "th e"}, kSpecials));
  for (const char* const part : {"the ", "a", "\u00e9"})
    ExpectLittleWorkWhenCancelled(part, [&tokenizer, text = Repeated(part, 200'000)] {
      try {
        tokenizer->Encode(text);
      } catch (const WorkCancelled&) {
        return;
      }
    });
}

// One name for each set of expressions.
std::vector<Pattern> DifferentPatterns() {
  std::vector<Pattern> different;
  for (const Pattern& pattern : AllPatterns()) {
    const bool known = std::any_of(different.begin(), different.end(), [&](const Pattern& other) {
      return other.rules == pattern.rules;
    });
    if (!known) different.push_back(pattern);
  }
  return different;
}

void ExpectLinearSplitting(const std::string& name, const Pretokenizer& pretokenizer) {
  constexpr Sizes sizes = {1024, 4096};
  for (const char* const part :
       {"a", "A", "aA", " ", "\n", " \n", "7", "!", "\u00e9", "\xff", "a's'S", "\u4e16a", " a"})
    foretoken::ExpectLinear(name + " splits " + part, sizes, [&](std::size_t size) {
      return [&pretokenizer, text = Repeated(part, size)] { pretokenizer.Split(text); };
    });
  // The texts differ at one end.
  for (const char* const part : {" ", "a", "A", "7", "!", "\n", "<sentinel:", "a b "})
    foretoken::ExpectLinear(name + " splits an end behind " + part, sizes, [&](std::size_t size) {
      return [&pretokenizer, text = Repeated(part, size) + "x" + Repeated(part, size) + "\n!"] {
        pretokenizer.Split(text);
      };
    });
}

TEST(TokenizerGrowth, PreTokenizers) {
  for (const Pattern& pattern : DifferentPatterns()) {
    const std::string name(pattern.name);
    ExpectLinearSplitting(name, Pretokenizer(*pattern.rules));
    if (!pattern.rules->exact.empty()) {
      ExpectLinearSplitting(name + " exactly", Pretokenizer(*pattern.rules, true));
    }
  }
}

TEST(TokenizerGrowth, ConversationsAreWritten) {
  const auto tokenizer =
      Load(SpmMetadata({{"a", -1}, {"<|im_start|>", 0, 3}, {"<|im_end|>", 0, 3}}));
  const auto chat = ChatTemplate::Choose({}, {.chat_template = "chatml"});
  ASSERT_TRUE(chat);
  for (const char* const part : {"a", " ", "\n", "<think>", "<|im_start|>", "\u3000"})
    ExpectLinearEncoding(std::string("a conversation of ") + part, [&](std::size_t size) {
      const std::vector<ChatMessage> messages = {{"user", Repeated(part, size)}};
      return [&, messages] {
        [[maybe_unused]] const auto tokens = EncodeChat(*chat, *tokenizer, messages, {});
      };
    });
  ExpectLinearEncoding("a conversation of many messages", [&](std::size_t size) {
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < size / 16; ++i)
      messages.push_back({i % 2 == 0 ? "user" : "assistant", "a"});
    return [&, messages] {
      [[maybe_unused]] const auto tokens = EncodeChat(*chat, *tokenizer, messages, {});
    };
  });
}

}  // namespace
}  // namespace foretoken::text
