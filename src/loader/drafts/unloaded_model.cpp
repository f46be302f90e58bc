// SPDX-License-Identifier: Apache-2.0
// What would draft for a model, and what a copy of it would cost: FindDrafters, DescribeCopy and
// DescribeCopies of foretoken/tools/model_file.h. Nothing is loaded.
#include "foretoken/catalogue.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "foretoken/tools/model_file.h"
#include "loader/drafts/draft_choice.h"
#include "loader/drafts/draft_files.h"
#include "loader/drafts/own_copy.h"
#include "loader/model_part.h"

namespace foretoken {
namespace {

// The model that an engine with these options would load, of which nothing is loaded.
class UnloadedModel {
 public:
  [[nodiscard]] static Result<UnloadedModel> Open(EngineOptions options) {
    UnloadedModel model;
    FORETOKEN_TRY(model.checkpoint_, formats::OpenCheckpoint(options.model));
    auto tokenizer = text::Tokenizer::Load(model.checkpoint_->metadata());
    if (!tokenizer) return Fail(Error(tokenizer.error()).In(options.model));
    model.tokenizer_ = std::move(*tokenizer);
    auto part = loader::DescribeModel(*model.checkpoint_, *model.tokenizer_);
    if (!part) return Fail(std::move(part).error().In(options.model));
    model.part_ = std::move(*part);
    if (options.context_size == 0) options.context_size = model.part_.config.context_length;
    loader::PartSizes sizes = loader::SizesOf(options);
    sizes.cache_positions = options.cache_tokens;
    sizes.logit_rows = sizes.sequences * (1 + kMaxDraft);
    loader::SetSizes(model.part_, sizes);
    model.options_ = std::move(options);
    return model;
  }

  const EngineOptions& options() const { return options_; }
  loader::DraftTarget target() const { return {*checkpoint_, *tokenizer_, part_}; }

 private:
  EngineOptions options_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  loader::ModelPart part_;
};

Result<FoundDrafters> Find(const UnloadedModel& model) {
  FORETOKEN_TRY(loader::DraftFiles files, loader::OpenDraftFiles(model.options(), model.target()));
  FoundDrafters found{
      .drafters = {}, .notices = std::move(files.notices), .details = std::move(files.details)};
  for (const loader::DraftPart& draft : files.drafts)
    found.drafters.push_back({std::string(draft.spec->info.name), draft.file->path()});
  return found;
}

// The copies of the model that options with the method `self` offer, and the one that is chosen.
class Copies {
 public:
  [[nodiscard]] static Result<Copies> Of(EngineOptions options) {
    for (const DrafterInfo* const drafter : AllDrafters())
      if (drafter->copies_target) options.speculative.method = drafter->name;
    options.draft_model.clear();
    options.speculative.draft_models.clear();
    FORETOKEN_CHECK_OK(loader::CheckDraftOptions(options));
    Copies copies;
    FORETOKEN_TRY(copies.model_, UnloadedModel::Open(std::move(options)));
    FORETOKEN_TRY(copies.files_,
                  loader::OpenDraftFiles(copies.model_.options(), copies.model_.target()));
    for (loader::DraftPart& draft : copies.files_.drafts)
      if (draft.part.copy) copies.draft_ = &draft;
    if (copies.draft_ == nullptr)
      return Fail(ErrorCode::kUnsupported, "drafts: this program makes no copies of models");
    return copies;
  }

  ModelCopy Chosen() { return Describe(draft_->offer); }
  std::vector<ModelCopy> All() {
    std::vector<ModelCopy> all;
    for (const loader::CopyOffer& offer : draft_->offers) all.push_back(Describe(offer));
    return all;
  }

 private:
  ModelCopy Describe(const loader::CopyOffer& offer) {
    draft_->part.copy = offer.types, draft_->part.copy_size = offer.size;
    return {.types = model::NameOf(offer.types),
            .bytes = offer.size.own,
            .pass_share = offer.size.reduced_share(),
            .is_likely_to_pay = loader::Pays(offer),
            .obstacle = loader::WhyNoRoom(*draft_, model_.options(), model_.target())};
  }

  UnloadedModel model_;
  loader::DraftFiles files_;
  loader::DraftPart* draft_ = nullptr;  // in files_, whose vector keeps its elements when it moves
};

}  // namespace

Result<FoundDrafters> FindDrafters(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<FoundDrafters> {
    FORETOKEN_TRY(const auto model, UnloadedModel::Open(std::move(options)));
    return Find(model);
  });
}

Result<ModelCopy> DescribeCopy(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<ModelCopy> {
    FORETOKEN_TRY(auto copies, Copies::Of(std::move(options)));
    return copies.Chosen();
  });
}

Result<std::vector<ModelCopy>> DescribeCopies(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<std::vector<ModelCopy>> {
    FORETOKEN_TRY(auto copies, Copies::Of(std::move(options)));
    return copies.All();
  });
}

}  // namespace foretoken
