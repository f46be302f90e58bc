// SPDX-License-Identifier: Apache-2.0
// Random vocabulary metadata of every family and random text: Load gives a value or an Error, tokens
// are in range, and if the vocabulary can spell every byte, the text comes back unchanged.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

#include "text/tokenizer/split/patterns.h"
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

struct Kind {
  const char* model;
  bool named_bytes;  // byte tokens are spelled <0x41>
  bool gives_back;   // no part of the text is left out
};
constexpr Kind kKinds[] = {{"llama", true, true}, {"gpt2", false, true}, {"gemma4", true, true},
                           {"t5", true, false},   {"bert", true, false}, {"gpt2", false, true},
                           {"llama", true, true}};

Metadata MakeMetadata(FuzzedDataProvider& data, const Lists& lists, const Kind& kind, bool prefix) {
  const auto patterns = foretoken::text::AllPatterns();
  const std::size_t pattern = data.ConsumeIntegralInRange<std::size_t>(0, patterns.size());
  const bool bytes =
      pattern < patterns.size() && patterns[pattern].symbols == foretoken::text::Symbols::kBytes;
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string(kind.model));
  metadata.Set("tokenizer.ggml.pre", bytes ? std::string(patterns[pattern].name) : "?");
  metadata.Set("foretoken.tokenizer.exact", data.ConsumeBool());
  metadata.Set("tokenizer.ggml.remove_extra_whitespaces", data.ConsumeBool());
  metadata.Set("tokenizer.ggml.normalizer.lowercase", data.ConsumeBool());
  if (!kind.gives_back) {
    metadata.Set("tokenizer.ggml.normalizer.nfc", data.ConsumeBool());
    std::vector<std::int64_t> map;
    for (const char c : data.ConsumeRandomLengthString(64)) map.push_back(c);
    if (!map.empty()) metadata.Set("tokenizer.ggml.precompiled_charsmap", map);
  }
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
  const Kind kind = data.PickValueInArray(kKinds);
  const bool complete = data.ConsumeBool();
  const bool prefix = data.ConsumeBool();
  Lists lists;
  if (complete) AddBytes(lists, kind.named_bytes);
  AddRandomTokens(data, lists);
  if (data.ConsumeProbability<float>() > 0.95F) lists.scores.resize(lists.scores.size() / 2);
  const auto tokenizer = Tokenizer::Load(MakeMetadata(data, lists, kind, prefix));
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
  const bool exact = complete && kind.gives_back && !parse_special &&
                     !(kind.named_bytes && prefix && lists.has_user_defined);
  if (exact && decoded != text) std::abort();
  return 0;
}
