// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/schema_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/work_count.h"

namespace foretoken::grammar {
namespace {

bool Constrains(const SchemaKeywords& keywords, const SchemaMember& member) {
  return keywords.never || keywords.types || keywords.values || keywords.implied != 0 ||
         (!keywords.any_of.empty() && !member.any_of_decided) ||
         (!keywords.one_of.empty() && !member.one_of_decided);
}

}  // namespace

Result<const SchemaKeywords*> SchemaSets::Read(int node) {
  if (const auto known = keywords_.find(node); known != keywords_.end()) return &known->second;
  FORETOKEN_TRY(SchemaKeywords keywords, ReadSchema(tree_, node));
  return &keywords_.emplace(node, std::move(keywords)).first->second;
}

Status SchemaSets::Add(int node, Search& search) {
  auto& [found, path, done] = search;
  CountWork(1 + path.size() + done.size());
  if (std::find(path.begin(), path.end(), node) != path.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: its $ref and allOf lead back to it; take one of them away",
                            tree_.Place(node)));
  if (std::find(done.begin(), done.end(), node) != done.end()) return {};
  if (path.size() >= kMaxReferences || done.size() > kMaxReferences)
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: more than {} schemas for one value by $ref and allOf; merge them",
                            tree_.Place(node), kMaxReferences));
  FORETOKEN_TRY(const SchemaKeywords* const keywords, Read(node));
  path.push_back(node);
  if (keywords->ref >= 0) FORETOKEN_CHECK_OK(Add(keywords->ref, search));
  for (const int part : keywords->all_of) FORETOKEN_CHECK_OK(Add(part, search));
  path.pop_back();
  done.push_back(node);
  // A known member is decided again, because earlier decisions may depend on it.
  const auto known = std::find_if(found.begin(), found.end(),
                                  [node](const SchemaMember& m) { return m.node == node; });
  if (known != found.end())
    *known = {node};
  else if (Constrains(*keywords, {node}))
    found.push_back({node});
  if (found.size() <= kMaxMembers) return {};
  return Fail(ErrorCode::kTooLarge,
              fmt::format("{}: one value has more than {} schemas to fit; merge them",
                          tree_.Place(node), kMaxMembers));
}

Result<SchemaSet> SchemaSets::Of(const std::vector<int>& nodes) {
  Search search;
  for (const int node : nodes) FORETOKEN_CHECK_OK(Add(node, search));
  return std::move(search.found);
}

Result<SchemaSet> SchemaSets::With(const SchemaSet& set, std::size_t decided, bool any_of,
                                   int choice) {
  Search search{.found = set};
  SchemaMember& member = search.found[decided];
  (any_of ? member.any_of_decided : member.one_of_decided) = true;
  if (!Constrains(Keywords(member), member))
    search.found.erase(search.found.begin() + static_cast<std::ptrdiff_t>(decided));
  FORETOKEN_CHECK_OK(Add(choice, search));
  return std::move(search.found);
}

Result<std::vector<SchemaSet>> SchemaSets::Choices(const SchemaSet& set) {
  std::vector<SchemaSet> choices;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const SchemaKeywords& keywords = Keywords(set[i]);
    const bool any_of = !keywords.any_of.empty() && !set[i].any_of_decided;
    if (!any_of && (keywords.one_of.empty() || set[i].one_of_decided)) continue;
    for (const int choice : any_of ? keywords.any_of : keywords.one_of) {
      FORETOKEN_TRY(SchemaSet with, With(set, i, any_of, choice));
      choices.push_back(std::move(with));
    }
    break;
  }
  return choices;
}

}  // namespace foretoken::grammar
