// SPDX-License-Identifier: Apache-2.0
// text/vocabulary_difference.h: the vocabularies of a target and of what drafts for it, compared.
#pragma once

#include "foretoken/tools/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

VocabularyDifference CompareVocabularies(const text::Tokenizer& target,
                                         const text::Tokenizer& draft);

}  // namespace foretoken::text
