// SPDX-License-Identifier: Apache-2.0
#include "foretoken/built_in_drafters.h"

#include <fmt/format.h>

#include "base/argument_checks.h"
#include "draft/built_in_drafter.h"
#include "draft/lookup/ngram.h"
#include "draft/lookup/suffix.h"

namespace foretoken {
namespace {

// A text's own length bounds it.
constexpr int kAnyContext = 1 << 30;

}  // namespace

Result<std::shared_ptr<Drafter>> MakeNgramDrafter(const NgramDrafterOptions& options) {
  FORETOKEN_CHECK_OK(CheckEngineOption("max_sequences", options.max_sequences));
  FORETOKEN_CHECK_OK(CheckRange("ngram max", options.ngram_max, 1, kMaxNgram));
  FORETOKEN_CHECK_OK(CheckRange("ngram min", options.ngram_min, 1, options.ngram_max));
  auto drafter = std::make_unique<draft::NgramDrafter>(
      draft::NgramSettings{.max_sequences = options.max_sequences,
                           .max_context = kAnyContext,
                           .ngram_max = options.ngram_max,
                           .ngram_min = options.ngram_min,
                           .storage = options.storage,
                           .keep = options.keep,
                           .corpus = options.corpus});
  return std::make_shared<draft::BuiltInDrafter>(
      std::move(drafter),
      draft::BuiltInSettings{.name = options.name, .max_sequences = options.max_sequences});
}

Result<std::shared_ptr<Drafter>> MakeSuffixDrafter(const SuffixDrafterOptions& options) {
  FORETOKEN_CHECK_OK(CheckEngineOption("max_sequences", options.max_sequences));
  FORETOKEN_CHECK_OK(CheckRange("suffix max tokens", options.max_tokens, 0, 1 << 30));
  auto drafter = std::make_unique<draft::SuffixDrafter>(
      draft::SuffixSettings{.max_sequences = options.max_sequences,
                            .max_context = kAnyContext,
                            .max_tokens = options.max_tokens});
  return std::make_shared<draft::BuiltInDrafter>(
      std::move(drafter),
      draft::BuiltInSettings{.name = options.name, .max_sequences = options.max_sequences});
}

}  // namespace foretoken
