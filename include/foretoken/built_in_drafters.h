// SPDX-License-Identifier: Apache-2.0
// foretoken/built_in_drafters.h: foretoken's own drafters as objects of a program's: a draft model
// from a file, n-gram lookup, suffix decoding.
//
//   auto drafter = foretoken::OpenDrafter("draft.gguf");
//   if (!drafter) return Print(drafter.error().message);
//   auto session = foretoken::DraftSession::Create(*drafter);   // draft_session.h: a text of yours
//   auto engine = foretoken::Engine::Open({.model = "target.gguf", .drafter = *drafter});
//
// They draft as the engine's own do, for it runs the same code: equal text, seed and parameters
// give equal drafts with equal probabilities, bit for bit. An object serves one engine or one
// session, and is called by one thread at a time. It may also lie inside a drafter of your own that
// passes its calls on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/drafter.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

struct ModelDrafterOptions {
  std::string name = "draft-file";  // a method, as Drafter::name
  int context_size = 0;   // tokens of a text; 0: the model's; beyond it nothing is drafted
  int max_sequences = 1;  // texts at a time
  int threads = 0;        // of its own; 0: as EngineOptions
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  int prefill_rows = 256;
  std::string isa = {};               // as EngineOptions
  std::string repack_cache = "auto";  // as EngineOptions
  // How drafts are drawn, in place of the request's sampling parameters.
  std::optional<SamplingParameters> sampling = {};
};

// A draft model with a cache and threads of its own.
class ModelDrafter : public Drafter {
 public:
  virtual const ModelSummary& summary() const = 0;
  // By the model's own vocabulary.
  virtual std::vector<std::int32_t> Tokenize(const std::string& text, bool add_special) const = 0;
  virtual std::string Detokenize(std::span<const std::int32_t> tokens) const = 0;
};

// Errors: those of the file (named); kMismatch (a head, which drafts from the target's hidden
// states); kTooLarge; kInvalidArgument (options).
[[nodiscard]] Result<std::shared_ptr<ModelDrafter>> OpenDrafter(
    const std::string& path, const ModelDrafterOptions& options = {});

// As SpeculativeOptions has them. The target's likely tokens (filler_top_k) are known to the
// engine's own n-gram drafter alone.
struct NgramDrafterOptions {
  std::string name = "own-ngram";
  int max_sequences = 1;
  int ngram_max = 3, ngram_min = 1;
  NgramStorage storage = NgramStorage::kMultiLevel;
  bool keep = false;                      // what a text taught serves the next ones too
  std::vector<std::int32_t> corpus = {};  // a text that is known from the start
};
// Errors: kInvalidArgument.
[[nodiscard]] Result<std::shared_ptr<Drafter>> MakeNgramDrafter(
    const NgramDrafterOptions& options = {});

struct SuffixDrafterOptions {
  std::string name = "own-suffix";
  int max_sequences = 1;
  int max_tokens = 1 << 20;  // of earlier outputs that are remembered, at most
};
// Errors: kInvalidArgument.
[[nodiscard]] Result<std::shared_ptr<Drafter>> MakeSuffixDrafter(
    const SuffixDrafterOptions& options = {});

}  // namespace foretoken
