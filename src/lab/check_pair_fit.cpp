// SPDX-License-Identifier: Apache-2.0
#include "lab/check_pair_fit.h"

namespace foretoken::lab {
namespace {

FileFacts FactsOf(const std::string& path, const ModelFile& file) {
  FileFacts facts{.path = path,
                  .architecture = {},
                  .type = file.type(),
                  .parameters = file.parameters(),
                  .bytes = file.file_bytes(),
                  .drafts_as = file.drafts_as(),
                  .obstacle = file.obstacle()};
  for (const auto& [key, value] : file.metadata())
    if (key == "general.architecture") facts.architecture = value;
  return facts;
}

}  // namespace

std::string PairFit::obstacle() const {
  if (!target.obstacle.empty()) return "the model: " + target.obstacle;
  if (!draft) return "";
  if (!draft->obstacle.empty()) return "the draft: " + draft->obstacle;
  if (map && !map->pairs.empty()) return "";
  if (const std::string why = vocabulary.obstacle(); !why.empty()) return "the draft: " + why;
  return "";
}

Result<PairFit> ExamineFiles(const std::string& target, const std::string& draft) {
  FORETOKEN_TRY(const auto target_file, ModelFile::Open(target));
  PairFit fit{.target = FactsOf(target, *target_file), .draft = {}, .vocabulary = {}};
  if (draft.empty()) return fit;
  FORETOKEN_TRY(const auto draft_file, ModelFile::Open(draft));
  fit.draft = FactsOf(draft, *draft_file);
  FORETOKEN_TRY(fit.vocabulary, target_file->CompareVocabulary(*draft_file));
  if (!fit.vocabulary.obstacle().empty() && fit.draft->drafts_as == "standalone") {
    FORETOKEN_TRY(fit.map, target_file->MapTokens(*draft_file));
  }
  return fit;
}

}  // namespace foretoken::lab
