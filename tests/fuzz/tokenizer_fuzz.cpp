// SPDX-License-Identifier: Apache-2.0
// Random vocabulary metadata and random text: Load gives a value or an Error, tokens are in range,
// and if the vocabulary can spell every byte, the text comes back unchanged.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8_stream.h"

namespace {

using foretoken::formats::Metadata;
using foretoken::text::Tokenizer;

std::string Character(char32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

struct Lists {
  std::vector<std::string> texts;
  std::vector<double> scores;
  std::vector<std::int64_t> types;
  bool has_user_defined = false;

  void Add(std::string text, double score, std::int64_t type) {
    texts.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(type);
  }
};

void AddBytes(Lists& lists, bool spm) {
  char32_t substitute = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char* hex = "0123456789ABCDEF";
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    lists.Add(spm ? std::string("<0x") + hex[byte >> 4] + hex[byte & 15] + ">"
                  : Character(printable ? byte : substitute++),
              0, spm ? 6 : 1);
  }
}

void AddRandomTokens(FuzzedDataProvider& data, Lists& lists) {
  static constexpr const char* kNames[] = {"▁",    "▁▁",         " ", "<s>",
                                           "</s>", "<|im_end|>", "Ġ", "<0x41>"};
  const int count = data.ConsumeIntegralInRange(0, 40);
  for (int i = 0; i < count; ++i) {
    std::string text = data.ConsumeBool() ? data.ConsumeRandomLengthString(8)
                                          : std::string(data.PickValueInArray(kNames));
    if (data.ConsumeBool() && !lists.texts.empty()) {
      text += lists.texts[data.ConsumeIntegralInRange<std::size_t>(0, lists.texts.size() - 1)];
    }
    const auto type = data.ConsumeIntegralInRange<std::int64_t>(-1, 7);
    lists.has_user_defined |= type == 4;
    lists.Add(std::move(text), data.ConsumeFloatingPointInRange(-10.0, 10.0), type);
  }
}

Metadata MakeMetadata(FuzzedDataProvider& data, const Lists& lists, bool spm, bool prefix) {
  static constexpr const char* kPatterns[] = {"llama-bpe",   "qwen2",   "qwen35", "gpt-2",
                                              "smollm",      "default", "tekken", "falcon",
                                              "deepseek-v3", "gpt-4o",  "?"};
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string(spm ? "llama" : "gpt2"));
  metadata.Set("tokenizer.ggml.pre", std::string(data.PickValueInArray(kPatterns)));
  metadata.Set("tokenizer.ggml.tokens", lists.texts);
  metadata.Set("tokenizer.ggml.token_type", lists.types);
  metadata.Set("tokenizer.ggml.scores", lists.scores);
  metadata.Set("tokenizer.ggml.add_space_prefix", prefix);
  for (const char* key : {"bos", "eos", "eot", "unknown", "fim_pad"}) {
    if (data.ConsumeBool()) {
      metadata.Set(std::string("tokenizer.ggml.") + key + "_token_id",
                   data.ConsumeIntegralInRange<std::int64_t>(-2, 400));
    }
  }
  std::vector<std::string> merges;
  const int n_merges = data.ConsumeIntegralInRange(0, 40);
  const auto pick = [&] {
    return lists.texts.empty()
               ? std::string()
               : lists.texts[data.ConsumeIntegralInRange<std::size_t>(0, lists.texts.size() - 1)];
  };
  for (int i = 0; i < n_merges; ++i) {
    merges.push_back(data.ConsumeBool() ? pick() + " " + pick()
                                        : data.ConsumeRandomLengthString(8));
  }
  if (data.ConsumeProbability<float>() > 0.05F) metadata.Set("tokenizer.ggml.merges", merges);
  return metadata;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  const bool spm = data.ConsumeBool();
  const bool complete = data.ConsumeBool();
  const bool prefix = data.ConsumeBool();
  Lists lists;
  if (complete) AddBytes(lists, spm);
  AddRandomTokens(data, lists);
  if (data.ConsumeProbability<float>() > 0.95F) lists.scores.resize(lists.scores.size() / 2);
  const auto tokenizer = Tokenizer::Load(MakeMetadata(data, lists, spm, prefix));
  if (!tokenizer) return 0;

  const bool parse_special = data.ConsumeBool();
  const std::string text = data.ConsumeRemainingBytesAsString();
  const auto tokens =
      (*tokenizer)
          ->Encode(text, {.add_special = data.ConsumeBool(), .parse_special = parse_special});
  foretoken::text::Utf8Stream stream;
  for (const foretoken::Token token : tokens) {
    if (token < 0 || token >= (*tokenizer)->vocabulary_size()) std::abort();
    stream.Push((*tokenizer)->Piece(token, true));
  }
  stream.Finish();
  const std::string decoded = (*tokenizer)->Decode(tokens);
  // After special tokens inside the text SentencePiece's encoder leaves spaces that Decode cannot
  // tell from others.
  const bool exact = complete && !parse_special && !(spm && prefix && lists.has_user_defined);
  if (exact && decoded != text) std::abort();
  return 0;
}
