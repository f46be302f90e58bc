// SPDX-License-Identifier: Apache-2.0
// train/text/vocabulary.h: trains a SentencePiece BPE vocabulary and keeps it in a GGUF file.
//
// Kudo and Richardson 2018, "SentencePiece". Byte fallback and no normalisation, so that every text
// comes back as it was. The file holds metadata alone, under the keys that llama.cpp uses.
#pragma once

#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::train {

struct VocabularyOptions {
  std::vector<std::string> text;
  int size = 4096;                      // pieces, the 256 bytes and <unk>, <s>, </s> among them
  std::int64_t max_bytes = 40'000'000;  // of text that is read, spread over all of it
  int threads = 2;
  std::string out;
};

// Trains and writes options.out. Errors: those of ReadDocuments; kInvalidArgument (a size that the
// text does not yield); kIo.
[[nodiscard]] Status TrainVocabulary(const VocabularyOptions& options);

}  // namespace foretoken::train
