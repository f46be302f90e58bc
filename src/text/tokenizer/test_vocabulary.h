// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/test_vocabulary.h: hand-made vocabularies for this module's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

struct TestToken {
  std::string text;
  double score = 0;
  std::int64_t type = 1;
};

inline formats::Metadata MakeMetadata(const std::string& model,
                                      const std::vector<TestToken>& tokens) {
  std::vector<std::string> texts;
  std::vector<double> scores;
  std::vector<std::int64_t> types;
  for (const TestToken& token : tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    types.push_back(token.type);
  }
  formats::Metadata metadata;
  metadata.Set("tokenizer.ggml.model", model);
  metadata.Set("tokenizer.ggml.tokens", texts);
  metadata.Set("tokenizer.ggml.scores", scores);
  metadata.Set("tokenizer.ggml.token_type", types);
  return metadata;
}

// <unk> <s> </s>, then the byte tokens, then the given ones: the first of those is token 259.
inline constexpr Token kFirstSpm = 259;
inline formats::Metadata SpmMetadata(const std::vector<TestToken>& tokens) {
  std::vector<TestToken> all = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  const char* hex = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    all.push_back({std::string("<0x") + hex[byte >> 4] + hex[byte & 15] + ">", 0, 6});
  }
  all.insert(all.end(), tokens.begin(), tokens.end());
  formats::Metadata metadata = MakeMetadata("llama", all);
  metadata.Set("tokenizer.ggml.add_bos_token", false);
  return metadata;
}
inline Token SpmByte(unsigned char byte) {
  return 3 + byte;
}

// The 256 characters of GPT-2's alphabet, token b for byte b, then one token per merge, then the
// given ones.
inline constexpr Token kFirstMerge = 256;
inline std::string GptCharacter(unsigned byte) {
  const auto printable = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  unsigned code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (unsigned b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}
inline formats::Metadata GptMetadata(const std::string& pre, const std::vector<std::string>& merges,
                                     const std::vector<TestToken>& tokens = {}) {
  std::vector<TestToken> all;
  for (unsigned byte = 0; byte < 256; ++byte) all.push_back({GptCharacter(byte)});
  for (std::string merge : merges) {
    merge.erase(merge.find(' ', 1), 1);
    all.push_back({merge});
  }
  all.insert(all.end(), tokens.begin(), tokens.end());
  formats::Metadata metadata = MakeMetadata("gpt2", all);
  metadata.Set("tokenizer.ggml.pre", pre);
  metadata.Set("tokenizer.ggml.merges", merges);
  return metadata;
}

inline std::unique_ptr<Tokenizer> Load(const formats::Metadata& metadata) {
  auto tokenizer = Tokenizer::Load(metadata);
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }
  return std::move(*tokenizer);
}

inline std::vector<Token> Encode(const Tokenizer& tokenizer, std::string_view text,
                                 bool parse_special = false) {
  return tokenizer.Encode(text, {.add_special = false, .parse_special = parse_special});
}

// Bytes of all kinds: ASCII, parts of UTF-8 sequences, spaces, anything.
inline std::string RandomBytes(std::mt19937& random, std::size_t max_size) {
  static const std::vector<std::string> kParts = {"a",
                                                  "b",
                                                  "the",
                                                  " ",
                                                  "  ",
                                                  "\n",
                                                  "é",
                                                  "世",
                                                  "😀",
                                                  "'s",
                                                  "12345",
                                                  "\xE2",
                                                  "\x80",
                                                  "\xF0\x9F",
                                                  "\xFF",
                                                  "\xC0\xAF",
                                                  std::string(1, '\0'),
                                                  "▁",
                                                  "\xED\xA0\x80"};
  std::string bytes;
  while (bytes.size() < max_size) {
    const auto pick = random() % (kParts.size() + 4);
    bytes += pick < kParts.size() ? kParts[pick] : std::string(1, static_cast<char>(random()));
  }
  return bytes;
}

}  // namespace foretoken::text
