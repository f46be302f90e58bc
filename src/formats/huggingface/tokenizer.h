// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/tokenizer.h: a folder's tokenizer and chat templates as the metadata that a GGUF
// file has: tokenizer.ggml.*, tokenizer.chat_template.
#pragma once

#include <cstdint>
#include <string>

#include "foretoken/result.h"
#include "formats/huggingface/json_file.h"
#include "formats/metadata.h"

namespace foretoken::formats::huggingface {

// Reads tokenizer.json, and, where they are there, tokenizer_config.json, generation_config.json and
// chat_template.jinja (or .json). config: of config.json, whose ids count where no other file names
// them. vocabulary: the least number of tokens; ids without one get names of their own. An id that
// exceeds it by more than the number of tokens in the file is an error. Errors: kNotFound (there is
// no tokenizer.json), kInvalidFile, kUnsupported (a kind that is not known), kIo.
[[nodiscard]] Status ReadTokenizer(const std::string& folder, const Json& config,
                                   std::int64_t vocabulary, Metadata& metadata);

}  // namespace foretoken::formats::huggingface
