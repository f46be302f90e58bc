// SPDX-License-Identifier: Apache-2.0
// foretoken/built_in_drafters.h: foretoken's own drafters as objects for your program: a draft
// model from a file, n-gram lookup, suffix decoding.
//
//   auto drafter = foretoken::OpenDrafter("draft.gguf");
//   if (!drafter) return Print(drafter.error().message);
//   auto session = foretoken::DraftSession::Create(*drafter);   // draft_session.h: a text of yours
//   auto engine = foretoken::Engine::Open({.model = "target.gguf", .drafter = *drafter});
//
// They run the engine's own code: equal text, seed and parameters give equal drafts with equal
// probabilities, bit for bit. An object serves one engine, or the texts of as many sessions as it has
// sequences (max_sequences), and one thread calls it at a time. Your own drafter may also contain one
// and pass its calls on.
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
  std::string name = "draft-file";  // a method's name, as Drafter::name
  int context_size = 0;             // tokens of a text; 0: the model's; no drafts beyond it
  int max_sequences = 1;            // texts at a time
  int threads = 0;                  // this drafter's own; 0: as EngineOptions
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  int draft_window = 0;  // as SpeculativeOptions, but texts are read whole
  int prefill_rows = 256;
  std::string isa = {};               // as EngineOptions
  std::string repack_cache = "auto";  // as EngineOptions
  int repack_cache_gb = 0;            // as EngineOptions
  // How drafts are drawn, in place of the request's sampling parameters.
  std::optional<SamplingParameters> sampling = {};
};

// A draft model with its own cache and threads.
class ModelDrafter : public Drafter {
 public:
  virtual const ModelSummary& summary() const = 0;
  // These use the model's own vocabulary.
  virtual std::vector<std::int32_t> Tokenize(const std::string& text, bool add_special) const = 0;
  virtual std::string Detokenize(std::span<const std::int32_t> tokens) const = 0;
};

// Errors: those of the file (named); kMismatch (a head, which drafts from the target's hidden
// states); kTooLarge; kInvalidArgument (options).
[[nodiscard]] Result<std::shared_ptr<ModelDrafter>> OpenDrafter(
    const std::string& path, const ModelDrafterOptions& options = {});

// The fields of SpeculativeOptions. Only the engine's own n-gram drafter can use the target's
// likely tokens (filler_top_k).
struct NgramDrafterOptions {
  std::string name = "own-ngram";
  int max_sequences = 1;
  int ngram_max = 3, ngram_min = 1;
  NgramStorage storage = NgramStorage::kMultiLevel;
  bool keep = false;                      // later texts use what earlier ones taught
  std::vector<std::int32_t> corpus = {};  // a text that is known from the start
};
// Errors: kInvalidArgument.
[[nodiscard]] Result<std::shared_ptr<Drafter>> MakeNgramDrafter(
    const NgramDrafterOptions& options = {});

struct SuffixDrafterOptions {
  std::string name = "own-suffix";
  int max_sequences = 1;
  int max_tokens = 1 << 20;  // the most tokens of earlier outputs that are kept
};
// Errors: kInvalidArgument.
[[nodiscard]] Result<std::shared_ptr<Drafter>> MakeSuffixDrafter(
    const SuffixDrafterOptions& options = {});

}  // namespace foretoken
