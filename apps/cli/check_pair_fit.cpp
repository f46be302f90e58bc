// SPDX-License-Identifier: Apache-2.0
#include "cli/check_pair_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/terminal.h"
#include "foretoken/model_file.h"

namespace foretoken::cli {
namespace {

constexpr std::size_t kShownDifferences = 5;
constexpr std::int32_t kMostTokens = 1 << 24;

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

// A vocabulary is 0 to n - 1, and the file refuses what is beyond.
Result<std::vector<std::string>> VocabularyOf(ModelFile& file) {
  FORETOKEN_CHECK_OK(file.DescribeTokenizer());
  std::int32_t known = 0, unknown = kMostTokens;
  while (known < unknown) {
    const std::int32_t middle = known + (unknown - known) / 2;
    if (file.Detokenize({&middle, 1}, true))
      known = middle + 1;
    else
      unknown = middle;
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(known));
  std::iota(ids.begin(), ids.end(), 0);
  return file.Pieces(ids);
}

VocabularyDifference Compare(const std::vector<std::string>& target,
                             const std::vector<std::string>& draft) {
  VocabularyDifference difference;
  difference.target = static_cast<int>(target.size());
  difference.draft = static_cast<int>(draft.size());
  for (std::size_t i = 0; i < std::min(target.size(), draft.size()); ++i) {
    if (target[i] == draft[i]) continue;
    ++difference.differing;
    if (difference.first.size() < kShownDifferences)
      difference.first.push_back(
          fmt::format("{}: '{}' / '{}'", i, OnOneLine(target[i]), OnOneLine(draft[i])));
  }
  return difference;
}

}  // namespace

std::string PairFit::obstacle() const {
  if (!target.obstacle.empty()) return "the model: " + target.obstacle;
  if (!draft.obstacle.empty()) return "the draft: " + draft.obstacle;
  if (!vocabulary.same()) return "their vocabularies differ; use a draft of the same model family";
  return "";
}

Result<PairFit> ExamineFiles(const std::string& target, const std::string& draft) {
  FORETOKEN_TRY(const auto target_file, ModelFile::Open(target));
  FORETOKEN_TRY(const auto draft_file, ModelFile::Open(draft));
  PairFit fit{.target = FactsOf(target, *target_file),
              .draft = FactsOf(draft, *draft_file),
              .vocabulary = {}};
  const auto in = [](auto failed, const std::string& path) {
    return Fail(std::move(failed).error().In(path));
  };
  auto target_pieces = VocabularyOf(*target_file);
  if (!target_pieces) return in(std::move(target_pieces), target);
  auto draft_pieces = VocabularyOf(*draft_file);
  if (!draft_pieces) return in(std::move(draft_pieces), draft);
  fit.vocabulary = Compare(*target_pieces, *draft_pieces);
  return fit;
}

}  // namespace foretoken::cli
