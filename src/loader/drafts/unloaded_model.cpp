// SPDX-License-Identifier: Apache-2.0
// What would draft for a model, and what a copy of it would cost: FindDrafters and DescribeCopy of
// foretoken/tools/model_file.h. Nothing is loaded.
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

std::string TypesOf(SpeculativeOptions options, const loader::DraftFiles& files) {
  if (options.self_draft.empty()) options.self_draft = files.self_draft;
  return loader::SelfDraftOf(options);
}

Result<ModelCopy> Describe(const UnloadedModel& model) {
  FORETOKEN_TRY(const loader::DraftFiles files,
                loader::OpenDraftFiles(model.options(), model.target()));
  for (const loader::DraftPart& draft : files.drafts)
    if (const loader::ModelPart& part = draft.part; part.copy)
      return ModelCopy{.types = TypesOf(model.options().speculative, files),
                       .bytes = part.copy_size.own,
                       .pass_share = part.copy_size.reduced_share(),
                       .is_likely_to_pay = loader::Pays(draft.offer),
                       .obstacle = loader::WhyNoRoom(draft, model.options(), model.target())};
  return Fail(ErrorCode::kUnsupported, "drafts: this program makes no copies of models");
}

}  // namespace

Result<FoundDrafters> FindDrafters(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<FoundDrafters> {
    FORETOKEN_TRY(const auto model, UnloadedModel::Open(std::move(options)));
    return Find(model);
  });
}

Result<ModelCopy> DescribeCopy(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<ModelCopy> {
    for (const DrafterInfo* const drafter : AllDrafters())
      if (drafter->copies_target) options.speculative.method = drafter->name;
    options.draft_model.clear();
    options.speculative.draft_models.clear();
    FORETOKEN_CHECK_OK(loader::CheckDraftOptions(options));
    FORETOKEN_TRY(const auto model, UnloadedModel::Open(std::move(options)));
    return Describe(model);
  });
}

}  // namespace foretoken
