// SPDX-License-Identifier: Apache-2.0
// text/vocabulary_difference.h: compares the vocabularies of a target and of its draft model.
#pragma once

#include "foretoken/tools/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

VocabularyDifference CompareVocabularies(const text::Tokenizer& target,
                                         const text::Tokenizer& draft);

}  // namespace foretoken::text
