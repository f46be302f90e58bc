// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/drafter_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "draft/methods.h"

namespace foretoken::loader {

void DrafterSet::Add(const DrafterEntry& entry, draft::OutputViews views,
                     std::vector<Token> subset) {
  const auto add = [&](std::string_view output, double pass_share,
                       std::unique_ptr<draft::Drafter> drafter, int least_context = 0,
                       int like = -1) {
    Add({.method = entry.method,
         .name = fmt::format("{}:{}", entry.name, output),
         .full_name = fmt::format("{}:{}", entry.full_name, output),
         .file = entry.file,
         .file_bytes = entry.file_bytes,
         .pass_share = pass_share,
         .drafter = std::move(drafter),
         .spec = entry.spec,
         .late = entry.late,
         .output = output,
         .least_context = least_context,
         .costs_like = like});
  };
  const int first = size();
  if (views.reduced && !subset.empty()) subsets_.push_back({size(), std::move(subset)});
  const double least_share = views.reduced ? entry.reduced_pass_share : entry.pass_share;
  if (views.reduced) add("subset", least_share, std::move(views.reduced));
  add("whole", entry.pass_share, std::move(views.whole));
  if (views.narrow) add("window", least_share, std::move(views.narrow), entry.least_context, first);
}

// Where a token that the subset lacks was committed in place of a draft, the whole output might have
// drafted it: that position tells nothing.
DrafterSet::OtherOutcome DrafterSet::OtherOutput(int d, std::span<const Token> drafts, int accepted,
                                                 Token next) const noexcept {
  for (const Subset& subset : subsets_) {
    const auto has = [&](Token token) {
      return std::binary_search(subset.tokens.begin(), subset.tokens.end(), token);
    };
    const int n = static_cast<int>(drafts.size());
    if (d == subset.drafter) return {d + 1, has(next) ? n : accepted, accepted};
    if (d != subset.drafter + 1) continue;
    const auto first = drafts.first(static_cast<std::size_t>(accepted));
    const auto lacked = std::find_if_not(first.begin(), first.end(), has);
    return {d - 1, n, static_cast<int>(lacked - first.begin())};
  }
  return {};
}

model::FeatureRequest DrafterSet::AssignFeatures() {
  model::FeatureRequest all;
  for (const DrafterEntry& entry : entries_) {
    const model::FeatureRequest needs = entry.drafter->Needs();
    for (const int layer : needs.layers)
      if (std::find(all.layers.begin(), all.layers.end(), layer) == all.layers.end())
        all.layers.push_back(layer);
    all.normed |= needs.normed;
  }
  for (DrafterEntry& entry : entries_) {
    const model::FeatureRequest needs = entry.drafter->Needs();
    for (const int layer : needs.layers)
      entry.feature_parts.push_back(static_cast<int>(
          std::find(all.layers.begin(), all.layers.end(), layer) - all.layers.begin()));
    if (needs.normed) entry.feature_parts.push_back(all.parts() - 1);
  }
  return all;
}

Result<std::vector<int>> DrafterSet::Find(std::string_view methods) const {
  std::vector<int> found;
  for (const std::string_view method : MethodItems(methods)) {
    if (method == "none") continue;
    const std::size_t before = found.size();
    for (int d = 0; d < size(); ++d)
      if ((*this)[d].Answers(method)) found.push_back(d);
    if (found.size() == before && method != "portfolio") {
      std::vector<std::string_view> names = {"none"};
      for (const DrafterEntry& entry : entries_) names.push_back(entry.name);
      return InvalidField(
          "speculative_method",
          fmt::format("'{}' is not one of this engine's; use {}", method, fmt::join(names, ", ")));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace foretoken::loader
