// SPDX-License-Identifier: Apache-2.0
// draft/methods.h: questions about a list of methods, as SpeculativeOptions::method holds it:
// "", "none", "portfolio", "ngram,standalone:tales".
#pragma once

#include <string_view>
#include <vector>

#include "base/comma_list.h"
#include "foretoken/catalogue.h"

namespace foretoken {

// The methods of a list; none of an empty one.
inline std::vector<std::string_view> MethodItems(std::string_view methods) {
  std::vector<std::string_view> items = CommaItems(methods);
  std::erase(items, std::string_view());
  return items;
}

// The drafter's name: "standalone" of "standalone:tales".
inline std::string_view DrafterOf(std::string_view method) {
  return method.substr(0, method.find(':'));
}

// "standalone" is used where "standalone:tales" is.
inline bool UsesMethod(std::string_view methods, std::string_view drafter) {
  for (const std::string_view method : MethodItems(methods))
    if (DrafterOf(method) == drafter) return true;
  return false;
}

// A drafter of the list that reads a file, a head before others; null: there is none.
inline const DrafterInfo* FileReader(std::string_view methods) {
  const DrafterInfo* found = nullptr;
  for (const DrafterInfo* const drafter : AllDrafters())
    if (drafter->reads_file && UsesMethod(methods, drafter->name) &&
        (found == nullptr || drafter->reads_features))
      found = drafter;
  return found;
}

// What its file holds, in words.
inline const char* FileOf(const DrafterInfo& drafter) {
  return drafter.reads_features ? "head" : "draft model";
}

}  // namespace foretoken
