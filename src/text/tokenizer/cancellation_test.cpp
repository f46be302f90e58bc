// SPDX-License-Identifier: Apache-2.0
// Tokenizing a long text ends when nobody waits for it, in each family and each of its parts.

#include "base/cancellation_testing.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

constexpr std::size_t kBytes = 64 << 10;

struct CancelledFamily {
  const char* name;
  formats::Metadata metadata;
};

std::vector<CancelledFamily> CancelledFamilies() {
  const std::vector<std::string> merges = {"a a", "aa aa", "t h", "th e"};
  formats::Metadata composing = GptMetadata("qwen2", merges);
  composing.Set("tokenizer.ggml.normalizer.nfc", true);
  formats::Metadata characters = SpmMetadata({{"a"}, {"aa"}, {"aaaa"}, {"th"}, {"the"}});
  characters.Set("tokenizer.ggml.model", std::string("gemma4"));
  characters.Set("tokenizer.ggml.merges", merges);
  return {
      {"SentencePiece BPE", SpmMetadata({{"a", -1}, {"aa", -2}, {"aaaa", -3}, {"the", -4}})},
      {"byte-level BPE", GptMetadata("llama-bpe", merges, {{"aaa", 0, 4}})},
      {"byte-level BPE that composes", composing},
      {"character BPE", characters},
      {"Unigram", MakeMetadata("t5", {{"</s>", 0, 3}, {"<unk>", 0, 2}, {"a", -1}, {"aaaa", -2}})},
      {"WordPiece", MakeMetadata("bert", {{"\u2581a"}, {"a"}, {"aaaa"}, {"<s>", 0, 3}})}};
}

TEST(Cancellation, EndsTokenizingOfEachFamily) {
  for (const CancelledFamily& family : CancelledFamilies()) {
    const auto tokenizer = Load(family.metadata);
    for (const std::string part :
         {"a", "the ", " a", "\n", "7", "\u00e9", "\xff", "e\u0301\u0327"}) {
      std::string text;
      while (text.size() < kBytes) text += part;
      const std::vector<TextPart> parts = {{"<s>", true}, {text, false}};
      const auto ends = [&](const std::string& what, const auto& encode) {
        // Each byte is looked at by the search for special tokens, and each character again.
        ExpectEndsWhenCancelled(family.name + what + part, kBytes + kBytes / 8, [&] {
          return CatchNoMemory("prompt", [&]() -> Status {
            static_cast<void>(encode());
            return {};
          });
        });
      };
      ends(" encodes ", [&] { return tokenizer->Encode(text); });
      ends(" encodes parts of ", [&] { return tokenizer->EncodeParts(parts); });
    }
  }
}

}  // namespace
}  // namespace foretoken::text
