// SPDX-License-Identifier: Apache-2.0
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "foretoken/tools/model_file.h"
#include "loader/drafts/draft_files.h"
#include "loader/model_part.h"

namespace foretoken {
namespace {

Result<FoundDrafters> Find(EngineOptions options, const formats::Checkpoint& checkpoint) {
  const auto tokenizer = text::Tokenizer::Load(checkpoint.metadata());
  if (!tokenizer) return Fail(Error(tokenizer.error()).In(options.model));
  auto described = loader::DescribeModel(checkpoint, **tokenizer);
  if (!described) return Fail(std::move(described).error().In(options.model));
  loader::ModelPart part = std::move(*described);
  if (options.context_size == 0) options.context_size = part.config.context_length;
  loader::PartSizes sizes = loader::SizesOf(options);
  sizes.cache_positions = options.cache_tokens;
  sizes.logit_rows = sizes.sequences * (1 + kMaxDraft);
  loader::SetSizes(part, sizes);
  FORETOKEN_TRY(loader::DraftFiles files,
                loader::OpenDraftFiles(options, {checkpoint, **tokenizer, part}));
  FoundDrafters found{
      .drafters = {}, .notices = std::move(files.notices), .details = std::move(files.details)};
  for (const loader::DraftPart& draft : files.drafts)
    found.drafters.push_back({std::string(draft.spec->info.name), draft.file->path()});
  return found;
}

}  // namespace

Result<FoundDrafters> FindDrafters(EngineOptions options) {
  return CatchNoMemory("drafters", [&]() -> Result<FoundDrafters> {
    FORETOKEN_TRY(const auto checkpoint, formats::OpenCheckpoint(options.model));
    return Find(std::move(options), *checkpoint);
  });
}

}  // namespace foretoken
