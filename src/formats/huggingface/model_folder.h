// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/model_folder.h: a folder as it is downloaded from Hugging Face: config.json,
// tokenizer.json, *.safetensors. It looks like a GGUF file of the same network: the same keys, and the
// same names, shapes and orders of rows.
#pragma once

#include <memory>
#include <string>

#include "foretoken/result.h"
#include "formats/checkpoint.h"

namespace foretoken::formats::huggingface {

// Errors: kNotFound (a file is missing), kInvalidFile (with the file and the reason), kUnsupported (a
// network, a tokenizer or a number type that is not known, with what to do), kIo.
[[nodiscard]] Result<std::unique_ptr<Checkpoint>> OpenModelFolder(const std::string& path);

}  // namespace foretoken::formats::huggingface
