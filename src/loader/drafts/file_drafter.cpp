// SPDX-License-Identifier: Apache-2.0
// Opens a draft model for a program: the engine's own drafter behind the public interface.
#include <fmt/format.h>

#include <algorithm>

#include "base/argument_checks.h"
#include "base/machine/thread_count.h"
#include "base/machine/thread_pool.h"
#include "base/work_count.h"
#include "draft/built_in_drafter.h"
#include "draft/networks/draft_model.h"
#include "foretoken/drafts.h"
#include "kernels/dispatch.h"
#include "loader/drafts/file_drafter.h"
#include "loader/grammars.h"
#include "loader/memory_plan.h"
#include "loader/model_part.h"
#include "model/arch/registry.h"

namespace foretoken {
namespace {

Status Check(const ModelDrafterOptions& o) {
  FORETOKEN_CHECK_OK(CheckEngineOption("context_size", o.context_size));
  FORETOKEN_CHECK_OK(CheckEngineOption("max_sequences", o.max_sequences));
  FORETOKEN_CHECK_OK(CheckEngineOption("repack_cache_gb", o.repack_cache_gb));
  FORETOKEN_CHECK_OK(CheckRange("draft_window", o.draft_window, 0, kMaxTextTokens));
  return CheckEngineOption("prefill_rows", o.prefill_rows);
}

}  // namespace

// The order of the members matters: later ones point to earlier ones.
class FileDrafter::Parts {
 public:
  explicit Parts(ModelDrafterOptions options) : options_(std::move(options)) {}

  Status Open(const std::string& path) {
    FORETOKEN_CHECK_OK(Check(options_));
    FORETOKEN_TRY(const int threads, ThreadCount(options_.threads));
    if (options_.isa.empty()) {
      FORETOKEN_TRY(kernels_, kernels::KernelsFromEnvironment());
    } else {
      FORETOKEN_TRY(const kernels::Isa cap, kernels::ParseIsa(options_.isa));
      kernels_ = &kernels::KernelsFor(cap);
    }
    pool_ = std::make_unique<ThreadPool>(threads);
    FORETOKEN_TRY(checkpoint_, formats::OpenCheckpoint(path));
    auto opened = OpenModel();
    return opened ? Status() : Fail(std::move(opened).error().In(path));
  }

  draft::BuiltInDrafter& face() { return *face_; }
  const ModelSummary& summary() const { return summary_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  Status OpenModel() {
    const model::DraftFile kind = model::DraftFileOf(*checkpoint_);
    if (!kind.model)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("this is {}, which drafts from a target's hidden states; give "
                              "it to an engine as its draft model",
                              kind.Noun()));
    FORETOKEN_TRY(tokenizer_, text::Tokenizer::Load(checkpoint_->metadata()));
    const int vocabulary = tokenizer_->vocabulary_size();
    if (options_.sampling) FORETOKEN_CHECK_OK(options_.sampling->Validate(vocabulary));
    FORETOKEN_TRY(loader::ModelPart part, loader::DescribeModel(*checkpoint_, *tokenizer_));
    const int context = options_.context_size;
    loader::SetSizes(part,
                     {.positions = context == 0 ? part.config.context_length
                                                : std::min(context, part.config.context_length),
                      .sequences = options_.max_sequences,
                      .rows = std::max(options_.prefill_rows, 2 * options_.max_sequences),
                      .logit_rows = options_.max_sequences,
                      .k = options_.cache_type_k,
                      .v = options_.cache_type_v});
    FORETOKEN_TRY(const loader::MemoryPlan plan,
                  loader::PlanMemory({.needs = loader::NeedsOf(part, *checkpoint_),
                                      .positions = part.tables.max_positions,
                                      .sequences = options_.max_sequences,
                                      .may_page = loader::KeepsTiles(options_.repack_cache)}));
    const model::TileCache tiles = loader::TileCacheFor(
        options_.repack_cache, options_.repack_cache_gb, *checkpoint_, plan.paged);
    FORETOKEN_TRY(auto loaded,
                  model::LocalRunner::Load(*checkpoint_, part.config, part.options, *kernels_,
                                           *pool_, {.cache = &tiles, .paged = plan.paged}));
    loader::Summarise(part, *checkpoint_, loaded->info().weight_bytes, vocabulary, summary_);
    summary_.end_tokens = tokenizer_->end_tokens();
    grammars_.emplace(*tokenizer_, tokenizer_->end_tokens());
    face_.emplace(std::make_unique<draft::DraftModel>(
                      std::move(loaded), part.tables, vocabulary, kMaxDraft, *kernels_,
                      /*keeps_cache=*/true, draft::ReadingWindow{.pass = options_.draft_window}),
                  draft::BuiltInSettings{.name = options_.name,
                                         .max_sequences = options_.max_sequences,
                                         .vocabulary = vocabulary,
                                         .sampling = options_.sampling,
                                         .grammar_of = [this](const SamplingParameters& sampling) {
                                           auto grammar = grammars_->Of(sampling);
                                           return grammar ? *grammar : nullptr;
                                         }});
    return {};
  }

  const ModelDrafterOptions options_;
  const kernels::Kernels* kernels_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<loader::Grammars> grammars_;
  ModelSummary summary_;
  std::optional<draft::BuiltInDrafter> face_;
};

FileDrafter::FileDrafter(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
FileDrafter::~FileDrafter() = default;

foretoken::Drafter& FileDrafter::face() const {
  return parts_->face();
}
const ModelSummary& FileDrafter::summary() const {
  return parts_->summary();
}
const text::Tokenizer& FileDrafter::tokenizer() const {
  return parts_->tokenizer();
}

std::vector<std::int32_t> FileDrafter::Tokenize(const std::string& text, bool add_special) const {
  return EmptyIfCancelled([&] {
    return tokenizer().Encode(text, {.add_special = add_special, .parse_special = false});
  });
}

std::string FileDrafter::Detokenize(std::span<const std::int32_t> tokens) const {
  return tokenizer().Decode(tokens, false);
}

Result<std::shared_ptr<ModelDrafter>> OpenDrafter(const std::string& path,
                                                  const ModelDrafterOptions& options) {
  return CatchNoMemory("drafter", [&]() -> Result<std::shared_ptr<ModelDrafter>> {
    auto parts = std::make_unique<FileDrafter::Parts>(options);
    FORETOKEN_CHECK_OK(parts->Open(path));
    return std::make_shared<FileDrafter>(std::move(parts));
  });
}

}  // namespace foretoken
