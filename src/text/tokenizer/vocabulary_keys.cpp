// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary_keys.h"

#include <fmt/format.h>

namespace foretoken::text {
namespace {

constexpr VocabularyKey kKeys[] = {
    {"tokenizer.ggml.model", KeyKind::kText},
    {"tokenizer.ggml.pre", KeyKind::kText},
    {"tokenizer.ggml.tokens", KeyKind::kTexts},
    {"tokenizer.ggml.merges", KeyKind::kTexts},
    {"tokenizer.ggml.scores", KeyKind::kNumbers},
    {"tokenizer.ggml.token_type", KeyKind::kIds},
    {"tokenizer.ggml.suppress_tokens", KeyKind::kIds},
    {"tokenizer.ggml.precompiled_charsmap", KeyKind::kIds},
    {"tokenizer.ggml.bos_token_id", KeyKind::kId},
    {"tokenizer.ggml.eos_token_id", KeyKind::kId},
    {"tokenizer.ggml.eot_token_id", KeyKind::kId},
    {"tokenizer.ggml.eom_token_id", KeyKind::kId},
    {"tokenizer.ggml.unknown_token_id", KeyKind::kId},
    {"tokenizer.ggml.seperator_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_pre_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_suf_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_mid_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_pad_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_rep_token_id", KeyKind::kId},
    {"tokenizer.ggml.fim_sep_token_id", KeyKind::kId},
    {"tokenizer.ggml.add_bos_token", KeyKind::kFlag},
    {"tokenizer.ggml.add_eos_token", KeyKind::kFlag},
    {"tokenizer.ggml.add_space_prefix", KeyKind::kFlag},
    {"tokenizer.ggml.remove_extra_whitespaces", KeyKind::kFlag},
    {"tokenizer.ggml.normalizer.lowercase", KeyKind::kFlag},
    {"tokenizer.ggml.normalizer.strip_accents", KeyKind::kFlag},
    {"tokenizer.ggml.normalizer.nfc", KeyKind::kFlag},
    {"tokenizer.chat_template", KeyKind::kText},
    {"foretoken.tokenizer.exact", KeyKind::kFlag},
    {"foretoken.tokenizer.metaspace", KeyKind::kText},
};

// What the value should be; empty if it is that.
std::string_view WhatItIsNot(const formats::Metadata& metadata, const VocabularyKey& key) {
  switch (key.kind) {
    case KeyKind::kText:
      return metadata.String(key.name) != nullptr ? "" : "a text";
    case KeyKind::kFlag:
      return metadata.Bool(key.name) ? "" : "true or false";
    case KeyKind::kId:
      return metadata.Int(key.name) ? "" : "a whole number";
    case KeyKind::kTexts:
      return metadata.Strings(key.name) != nullptr ? "" : "a list of texts";
    case KeyKind::kNumbers:
      return metadata.Floats(key.name) != nullptr ? "" : "a list of numbers with fractions";
    case KeyKind::kIds:
      return metadata.Ints(key.name) != nullptr ? "" : "a list of whole numbers";
  }
  return "";
}

}  // namespace

std::span<const VocabularyKey> AllVocabularyKeys() {
  return kKeys;
}

Status CheckKinds(const formats::Metadata& metadata) {
  for (const VocabularyKey& key : kKeys) {
    if (metadata.Find(key.name) == nullptr) continue;
    if (const std::string_view kind = WhatItIsNot(metadata, key); !kind.empty())
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("tokenizer: {} is not {}; the file is damaged, convert the model anew",
                      key.name, kind));
  }
  return {};
}

}  // namespace foretoken::text
