// SPDX-License-Identifier: Apache-2.0
// Texts, tokens and templates come from clients and files, so their processing time must grow no
// faster than their size.
#include "base/scaling_testing.h"

#include <gtest/gtest.h>

#include "text/chat_template.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

const std::vector<std::size_t> kSizes = {4096, 16384, 65536};

// Texts that are hard for tokenizers. The last ones fit the vocabularies below.
constexpr const char* kParts[] = {"a",          " ",    "\n",    "7",       "!",        "\u00e9",
                                  "\U0001f600", "\xff", "\xe2",  "\u2581",  "A",        "aA",
                                  " a",         " \n",  "a's'S", "\u4e16a", "<s>",      "<s",
                                  "\r\n ",      "ab",   "abc",   "the ",    "<|x|><|x", "\x01"};

void ExpectLinear(const std::string& name,
                  const std::function<std::function<void()>(std::size_t)>& prepare) {
  foretoken::ExpectLinear(name, kSizes, prepare);
}

void ExpectLinearCoding(const std::string& name, const Tokenizer& tokenizer) {
  for (const char* const part : kParts) {
    ExpectLinear(name + " encodes " + part, [&](std::size_t size) {
      return [&tokenizer, text = Repeated(part, size)] { Encode(tokenizer, text, true); };
    });
  }
  std::string all;
  for (const char* const part : kParts) all += part;
  ExpectLinear(name + " decodes", [&](std::size_t size) {
    return [&tokenizer, tokens = Encode(tokenizer, Repeated(all, size), true)] {
      tokenizer.Decode(tokens, true);
    };
  });
}

const std::vector<TestToken> kSpecials = {{"<s>", 0, 3},   {"<|x|>", 0, 3}, {"<s", 0, 4},
                                          {"aaaa", 0, 4},  {"aaa", 0, 4},   {"aa", 0, 4},
                                          {"<|xx|>", 0, 3}};

TEST(Scaling, SentencePiece) {
  std::vector<TestToken> tokens = {
      {"a", -1},       {"b", -2},    {"ab", -3},     {"abab", -4},
      {"aa", -5},      {"aaaa", -6}, {"\u2581", -7}, {"\u2581\u2581", -8},
      {"\u2581a", -9}, {"th", -10},  {"the", -11},   {"\u2581\u2581\u2581\u2581", -12}};
  ExpectLinearCoding("SentencePiece", *Load(SpmMetadata(tokens)));
  tokens.insert(tokens.end(), kSpecials.begin(), kSpecials.end());
  ExpectLinearCoding("SentencePiece with special tokens", *Load(SpmMetadata(tokens)));
}

TEST(Scaling, ByteLevel) {
  const std::vector<std::string> merges = {"a a",  "aa aa",    "a b",           "ab ab",    "t h",
                                           "th e", "\u0120 a", "\u0120 \u0120", "aaaa aaaa"};
  ExpectLinearCoding("byte level", *Load(GptMetadata("llama-bpe", merges)));
  ExpectLinearCoding("byte level with special tokens",
                     *Load(GptMetadata("gpt-2", merges, kSpecials)));
}

TEST(Scaling, PreTokenizers) {
  for (const char* const name : {"default", "llama-bpe", "qwen2", "qwen35", "gpt-2", "smollm",
                                 "falcon", "deepseek-v3", "tekken", "gpt-4o"}) {
    const Pretokenizer pretokenizer(FindPattern(name));
    for (const char* const part : kParts)
      ExpectLinear(std::string(name) + " splits " + part, [&](std::size_t size) {
        return [&pretokenizer, text = Repeated(part, size)] { pretokenizer.Split(text); };
      });
    // The texts differ at one end.
    for (const char* const part : {" ", "a", "A", "7", "!", "\n"})
      ExpectLinear(std::string(name) + " splits an end behind " + part, [&](std::size_t size) {
        return [&pretokenizer, text = Repeated(part, size) + "x" + Repeated(part, size) + "\n!"] {
          pretokenizer.Split(text);
        };
      });
  }
}

TEST(Scaling, ConversationsAreWritten) {
  const auto tokenizer =
      Load(SpmMetadata({{"a", -1}, {"<|im_start|>", 0, 3}, {"<|im_end|>", 0, 3}}));
  const auto chat = ChatTemplate::Choose({}, {.chat_template = "chatml"});
  ASSERT_TRUE(chat);
  for (const char* const part : {"a", " ", "\n", "<think>", "<|im_start|>", "\u3000"})
    ExpectLinear(std::string("a conversation of ") + part, [&](std::size_t size) {
      const std::vector<ChatMessage> messages = {{"user", Repeated(part, size)}};
      return [&, messages] {
        [[maybe_unused]] const auto tokens = EncodeChat(*chat, *tokenizer, messages, {});
      };
    });
  ExpectLinear("a conversation of many messages", [&](std::size_t size) {
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < size / 64; ++i)
      messages.push_back({i % 2 == 0 ? "user" : "assistant", "a"});
    return [&, messages] {
      [[maybe_unused]] const auto tokens = EncodeChat(*chat, *tokenizer, messages, {});
    };
  });
}

}  // namespace
}  // namespace foretoken::text
