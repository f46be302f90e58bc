// SPDX-License-Identifier: Apache-2.0
// grammar/schema/schema_keywords.h: one schema of a JSON Schema, with its keywords checked and read as
// values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "grammar/pattern/number_range.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::grammar {

// Sets of JSON types. A number is either whole or not.
using JsonTypes = unsigned;
constexpr JsonTypes kNullType = 1, kBooleanType = 2, kIntegerType = 4, kFractionType = 8,
                    kStringType = 16, kArrayType = 32, kObjectType = 64;
constexpr JsonTypes kNumberType = kIntegerType | kFractionType, kAnyType = 127;

// The type of a value; 2.0 is a whole number.
JsonTypes TypeOf(const Json& value);

// The schemas in it are nodes of the tree.
struct SchemaKeywords {
  static constexpr int kNone = -1;
  static constexpr int kMaxRepeats = 10000;  // minItems, maxLength, ...

  bool never = false;  // the schema false
  std::optional<JsonTypes> types;
  JsonTypes implied = 0;  // by keywords that belong to one type
  int ref = kNone;
  std::vector<int> all_of, any_of, one_of;
  std::optional<std::vector<int>> values;  // enum and const
  std::vector<int> value_numbers;          // JsonTree::ValueNumber of values, ascending

  int properties = kNone;  // the object of schemas
  std::vector<std::string> required;
  int additional = kNone;

  std::vector<int> prefix_items;
  int items = kNone;  // for items behind prefix_items
  int min_items = 0, max_items = kNone;

  int min_length = 0, max_length = kNone;
  std::optional<std::string> pattern;  // from pattern, or from a format
  int pattern_at = kNone;              // the node of that keyword
  NumberRange range;
  bool whole_multiple = false;  // multipleOf 1
};

// Reads a node of the tree as a schema. Errors: begin with its place; kInvalidArgument,
// kUnsupported, kTooLarge.
[[nodiscard]] Result<SchemaKeywords> ReadSchema(const JsonTree& tree, int node);

}  // namespace foretoken::grammar
