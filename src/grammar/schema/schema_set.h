// SPDX-License-Identifier: Apache-2.0
// grammar/schema/schema_set.h: schemas that one value must fit together.
//
// $ref and allOf add members. anyOf and oneOf are decided later, one at a time; each choice gives
// another set. Equal sets are equal constraints, so recursion through $ref leads back to a known
// set.
#pragma once

#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "foretoken/result.h"
#include "grammar/schema/json_tree.h"
#include "grammar/schema/schema_keywords.h"

namespace foretoken::grammar {

struct SchemaMember {
  int node = 0;
  bool any_of_decided = false, one_of_decided = false;

  friend bool operator<(const SchemaMember& a, const SchemaMember& b) {
    return std::tie(a.node, a.any_of_decided, a.one_of_decided) <
           std::tie(b.node, b.any_of_decided, b.one_of_decided);
  }
};

// The members that constrain, in the order in which they were found. Empty: every value fits.
using SchemaSet = std::vector<SchemaMember>;

class SchemaSets {
 public:
  static constexpr std::size_t kMaxMembers = 64;
  static constexpr std::size_t kMaxReferences = 200;  // of nested $ref and allOf

  explicit SchemaSets(const JsonTree& tree) : tree_(tree) {}

  // Errors: those of ReadSchema; schemas that lead to themselves without a value between.
  [[nodiscard]] Result<SchemaSet> Of(const std::vector<int>& nodes);
  // One set for each choice of a member's anyOf or oneOf; empty: there is nothing to decide.
  [[nodiscard]] Result<std::vector<SchemaSet>> Choices(const SchemaSet& set);
  // The keywords of a member.
  const SchemaKeywords& Keywords(const SchemaMember& member) const {
    return keywords_.at(member.node);
  }

 private:
  struct Search {
    SchemaSet found;
    std::vector<int> path, done;
  };
  Result<const SchemaKeywords*> Read(int node);
  Status Add(int node, Search& search);
  Result<SchemaSet> With(const SchemaSet& set, std::size_t decided, bool any_of, int choice);

  const JsonTree& tree_;
  std::unordered_map<int, SchemaKeywords> keywords_;  // of the nodes that were read so far
};

}  // namespace foretoken::grammar
