// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/pre_tokenizer.h: how tokenizer.json cuts a text into words, by the name that GGUF
// files have for it.
#pragma once

#include <string>

#include "foretoken/result.h"
#include "formats/huggingface/json_file.h"

namespace foretoken::formats::huggingface {

struct PreTokenizer {
  bool byte_level = false;    // words are sequences of bytes in GPT-2's alphabet
  std::string name;           // of the expressions, where it is: a value of tokenizer.ggml.pre
  bool space_prefix = false;  // else: whether a space is put before the first word
  std::string metaspace;      // "first", "always": the scheme of a part that does so; else empty
};

// file: of tokenizer.json. ignores_merges: a word that is a token becomes one without merges.
// Error: kUnsupported (expressions that are not known; rules that are no words' rules).
[[nodiscard]] Result<PreTokenizer> ReadPreTokenizer(const JsonFields& file, bool ignores_merges);

}  // namespace foretoken::formats::huggingface
