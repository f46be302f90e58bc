// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/drafter_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "foretoken/methods.h"

namespace foretoken::loader {

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
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("speculative method: '{}' is not one of this engine's; use {}",
                              method, fmt::join(names, ", ")));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace foretoken::loader
