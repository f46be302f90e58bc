// SPDX-License-Identifier: Apache-2.0
// train/text/documents.h: plain text files as documents, separated by "<|endoftext|>".
#pragma once

#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::train {

// White space around a document is removed. Errors: kNotFound, kIo, kInvalidFile (not text, not
// UTF-8, control characters of a binary file).
[[nodiscard]] Result<std::vector<std::string>> ReadDocuments(const std::string& path);

}  // namespace foretoken::train
