// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kShown = 5, kShownBytes = 40;  // tokens that are named, and of each text
// Models of one family share all but padding and a few special tokens (Qwen2.5: 99.9 %). In two
// families the texts of the same ids differ: SentencePiece vocabularies share little more than
// their bytes, and those that grew from the same merges at most 80 %.
constexpr double kLeastShare = 0.9;

}  // namespace

namespace text {

VocabularyDifference CompareVocabularies(const text::Tokenizer& target,
                                         const text::Tokenizer& draft) {
  VocabularyDifference difference{.target = target.vocabulary_size(),
                                  .draft = draft.vocabulary_size(),
                                  .differing = {},
                                  .first = {}};
  const int common = std::min(difference.target, difference.draft);
  for (int id = 0; id < common; ++id) {
    if (target.TokenText(id) == draft.TokenText(id)) continue;
    difference.differing.push_back(id);
    if (difference.first.size() < kShown)
      difference.first.push_back(fmt::format("{}: '{}' / '{}'", id,
                                             Shown(target.TokenText(id), kShownBytes),
                                             Shown(draft.TokenText(id), kShownBytes)));
  }
  return difference;
}

}  // namespace text

int VocabularyDifference::shared() const {
  return std::min(target, draft) - static_cast<int>(differing.size());
}

std::string VocabularyDifference::Describe() const {
  std::string out = target == draft ? fmt::format("{} tokens", target)
                                    : fmt::format("{} and {} tokens", target, draft);
  out += fmt::format(", of which {} are shared", shared());
  if (!differing.empty())
    out += fmt::format("; {} {} of other texts, first {}", differing.size(),
                       differing.size() == 1 ? "is" : "are", fmt::join(first, ", "));
  return out;
}

std::string VocabularyDifference::obstacle() const {
  if (shared() >= kLeastShare * target) return "";
  return fmt::format(
      "its vocabulary is not the target's: {}; {:.0f} % of the target's must be shared; use a "
      "draft model of the same family, or a head that was trained for this model",
      Describe(), 100 * kLeastShare);
}

}  // namespace foretoken
