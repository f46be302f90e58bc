// SPDX-License-Identifier: Apache-2.0
#include "calls/tool_parameters.h"

#include <gtest/gtest.h>

namespace foretoken::calls {
namespace {

// Schemas as pydantic and zod write them.
TEST(ParametersOf, TellsTextsFromJson) {
  const Tool tool = {"f", R"({"type": "object", "required": ["city"], "$defs": {
      "Unit": {"enum": ["C", "F"], "type": "string"},
      "Place": {"type": "object", "properties": {"at": {"$ref": "#/$defs/Unit"}}}},
    "properties": {
      "city": {"type": "string"},
      "unit": {"$ref": "#/$defs/Unit"},
      "place": {"$ref": "#/$defs/Place"},
      "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
      "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "size": {"enum": [1, 2]},
      "kind": {"enum": ["a", "b"]},
      "one": {"const": 1},
      "list": {"items": {"type": "string"}},
      "types": {"type": ["integer", "null"]},
      "more": {"type": ["string", "null"]},
      "loop": {"$ref": "#/properties/loop"},
      "any": {}}})"};
  const std::vector<Parameter> all = ParametersOf(tool);
  std::string texts;
  for (const Parameter& parameter : all)
    if (parameter.is_text) texts += parameter.name + " ";
  EXPECT_EQ(texts, "city unit name kind more loop any ");
  EXPECT_TRUE(all[0].required);
  EXPECT_FALSE(all[1].required);
  EXPECT_EQ(all[1].schema, R"({"enum":["C","F"],"type":"string"})");
  EXPECT_TRUE(all[2].schema.starts_with(R"({"$defs":{"Unit":)")) << all[2].schema;
}

}  // namespace
}  // namespace foretoken::calls
