// SPDX-License-Identifier: Apache-2.0
// grammar/schema/schema_merge.h: what the schemas of a set require together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "grammar/schema/schema_set.h"

namespace foretoken::grammar {

// A set without choices, merged. Lists of nodes are schemas that must all be satisfied.
struct MergedSchema {
  struct Property {
    std::string name;
    std::vector<int> schemas;
    bool required = false;
  };

  JsonTypes types = kAnyType;
  std::optional<std::vector<int>> values;  // enum and const: one of these, of types

  std::vector<Property> properties;  // in order
  bool open = false;                 // other members are allowed; they must fit `additional`
  std::vector<int> additional;

  std::vector<std::vector<int>> prefix_items;
  std::vector<int> items;
  int min_items = 0, max_items = SchemaKeywords::kNone;

  int min_length = 0, max_length = SchemaKeywords::kNone;
  std::optional<std::string> pattern;
  int pattern_at = SchemaKeywords::kNone;
  NumberRange range;

  std::string contradiction;  // why no value fits, if that is known here
};

// Errors: kUnsupported, for combinations that cannot be followed; they begin with the place.
[[nodiscard]] Result<MergedSchema> Merge(const JsonTree& tree, const SchemaSets& sets,
                                         const SchemaSet& set);

}  // namespace foretoken::grammar
