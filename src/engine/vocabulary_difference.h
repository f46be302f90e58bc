// SPDX-License-Identifier: Apache-2.0
// engine/vocabulary_difference.h: the vocabularies of a target and of what drafts for it, compared.
#pragma once

#include "foretoken/model_file.h"
#include "text/tokenizer.h"

namespace foretoken::engine {

VocabularyDifference CompareVocabularies(const text::Tokenizer& target,
                                         const text::Tokenizer& draft);

}  // namespace foretoken::engine
