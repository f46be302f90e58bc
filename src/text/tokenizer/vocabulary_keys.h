// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/vocabulary_keys.h: the keys that a file's vocabulary is read from, and what their
// values are.
#pragma once

#include <span>
#include <string_view>

#include "foretoken/result.h"
#include "formats/metadata.h"

namespace foretoken::text {

enum class KeyKind { kText, kFlag, kId, kTexts, kNumbers, kIds };

struct VocabularyKey {
  std::string_view name;
  KeyKind kind;
};

std::span<const VocabularyKey> AllVocabularyKeys();

// Whether all of these keys that the metadata have hold values of their kind. Errors: kInvalidFile.
[[nodiscard]] Status CheckKinds(const formats::Metadata& metadata);

}  // namespace foretoken::text
