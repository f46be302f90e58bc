// SPDX-License-Identifier: Apache-2.0
// Scorers of foretoken.h: a model's logits for given tokens.
#include "foretoken/scorer.h"

#include <utility>

#include "capi/engine.h"
#include "capi/lists.h"

struct foretoken_scorer {
  std::unique_ptr<foretoken::Scorer> scorer;
};

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_scorer_open(const foretoken_options* options, foretoken_scorer** scorer,
                                       foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(scorer, "scorer"));
    *scorer = nullptr;
    FORETOKEN_CHECK_OK(capi::NeedsKind(options, FORETOKEN_ENGINE));
    auto made = std::make_unique<foretoken_scorer>();
    FORETOKEN_TRY(made->scorer, foretoken::Scorer::Create(options->engine));
    *scorer = made.release();
    return {};
  });
}

foretoken_status foretoken_scorer_score(foretoken_scorer* scorer, int32_t sequence,
                                        const int32_t* tokens, size_t count, const float** logits,
                                        size_t* vocabulary, size_t* stride,
                                        foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(logits, "logits"));
    FORETOKEN_CHECK_OK(capi::Needs(vocabulary, "vocabulary"));
    FORETOKEN_CHECK_OK(capi::Needs(stride, "stride"));
    *logits = nullptr, *vocabulary = 0, *stride = 0;
    FORETOKEN_CHECK_OK(capi::Needs(scorer, "scorer"));
    FORETOKEN_CHECK_OK(capi::NeedsList(tokens, count, "tokens"));
    FORETOKEN_TRY(const foretoken::TokenRows rows,
                  scorer->scorer->Score(capi::ListOf(tokens, count), sequence));
    *logits = rows.data;
    *vocabulary = static_cast<std::size_t>(rows.vocabulary_size);
    *stride = static_cast<std::size_t>(rows.stride);
    return {};
  });
}

size_t foretoken_scorer_length(const foretoken_scorer* scorer, int32_t sequence) {
  return scorer == nullptr ? 0 : static_cast<std::size_t>(scorer->scorer->length(sequence));
}

foretoken_status foretoken_scorer_truncate(foretoken_scorer* scorer, int32_t sequence,
                                           size_t length, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(scorer, "scorer"));
    if (length > foretoken_scorer_length(scorer, sequence))
      return foretoken::InvalidField("length",
                                     "it is beyond the sequence's own; give a shorter one");
    return scorer->scorer->Truncate(sequence, static_cast<int>(length));
  });
}

void foretoken_scorer_close(foretoken_scorer* scorer) {
  delete scorer;
}

}  // extern "C"
