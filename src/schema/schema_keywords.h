// SPDX-License-Identifier: Apache-2.0
// schema/schema_keywords.h: one schema of a JSON Schema, its keywords checked and as values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "schema/json_tree.h"
#include "schema/number_range.h"

namespace foretoken::schema {

// Sets of JSON types. A number is a whole one or another.
using JsonTypes = unsigned;
constexpr JsonTypes kNullType = 1, kBooleanType = 2, kIntegerType = 4, kFractionType = 8,
                    kStringType = 16, kArrayType = 32, kObjectType = 64;
constexpr JsonTypes kNumberType = kIntegerType | kFractionType, kAnyType = 127;

// The type of a value; 2.0 is a whole number.
JsonTypes TypeOf(const JsonNode& value);

// Schemas in it are nodes of the tree.
struct SchemaKeywords {
  static constexpr int kNone = -1;
  static constexpr int kMaxRepeats = 10000;  // minItems, maxLength, ...

  bool never = false;  // the schema false
  std::optional<JsonTypes> types;
  JsonTypes implied = 0;  // by keywords of one type
  int ref = kNone;
  std::vector<int> all_of, any_of, one_of;
  std::optional<std::vector<int>> values;  // enum and const
  std::vector<int> value_numbers;          // JsonNode::value of values, ascending

  int properties = kNone;  // the object of schemas
  std::vector<std::string> required;
  int additional = kNone;

  std::vector<int> prefix_items;
  int items = kNone;  // of those behind prefix_items
  int min_items = 0, max_items = kNone;

  int min_length = 0, max_length = kNone;
  std::optional<std::string> pattern;  // also that of a format
  int pattern_at = kNone;              // its keyword's node
  NumberRange range;
  bool whole_multiple = false;  // multipleOf 1
};

// The tree's node as a schema. Errors: begin with its place; kInvalidArgument, kUnsupported,
// kTooLarge.
[[nodiscard]] Result<SchemaKeywords> ReadSchema(const JsonTree& tree, int node);

}  // namespace foretoken::schema
