// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "foretoken/structured_output.h"

namespace foretoken {
namespace {

struct ErrorCase {
  std::string schema;
  ErrorCode code;
  std::string words;  // of the message
};

constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument, kUnsupported = ErrorCode::kUnsupported,
                    kTooLarge = ErrorCode::kTooLarge;

void CheckErrors(const std::vector<ErrorCase>& cases) {
  for (const ErrorCase& c : cases) {
    const auto gbnf = JsonSchemaGrammar(c.schema);
    const std::string shown = c.schema.substr(0, 200);
    ASSERT_FALSE(gbnf.has_value()) << shown << "\n" << *gbnf;
    const std::string& message = gbnf.error().message;
    EXPECT_EQ(gbnf.error().code, c.code) << shown << "\n" << message;
    EXPECT_NE(message.find(c.words), message.npos) << shown << "\n" << message;
    EXPECT_TRUE(message.starts_with("json schema: ")) << message;
    EXPECT_NE(message.find("; "), message.npos) << message;
    EXPECT_LT(message.size(), 500u) << message;
    for (const char character : message)
      EXPECT_TRUE(character >= ' ' && character < '\x7f') << message;
  }
}

std::string Repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(JsonSchemaErrors, NameWhatIsNoSchema) {
  CheckErrors({
      {"", kInvalid, "byte"},
      {"{", kInvalid, "byte"},
      {"{'a': 1}", kInvalid, "not valid JSON"},
      {"{} {}", kInvalid, "not valid JSON"},
      {"\"\xff\"", kInvalid, "UTF-8"},
      {"{\"minimum\": 1e999}", kInvalid, "byte"},
      {std::string("{}\0", 3), kInvalid, "NUL"},
      {"[]", kInvalid, "#: it is not a schema"},
      {"3", kInvalid, "it is not a schema"},
      {R"({"a": 1, "a": 2})", kInvalid, "'a' is given twice"},
      {R"({"properties": {"a": {"items": 3}}})", kInvalid,
       "#/properties/a/items: it is not a schema"},
      {R"({"properties": {"a/b": 3}})", kInvalid, "#/properties/a~1b"},
      {R"({"anyOf": [{}, null]})", kInvalid, "#/anyOf/1: it is not a schema"},
  });
}

TEST(JsonSchemaErrors, NameKeywordsThatAreNotFollowed) {
  std::vector<ErrorCase> cases;
  for (const char* keyword :
       {"not", "if", "then", "else", "contains", "minContains", "patternProperties",
        "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
        "dependencies", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "nullable",
        "minlength"})
    cases.push_back(
        {R"({"properties": {"p": {")" + std::string(keyword) + R"(": {}}}})", kUnsupported,
         "#/properties/p: the keyword '" + std::string(keyword) + "' is not supported"});
  cases.push_back({R"({"type": "array", "uniqueItems": true})", kUnsupported, "#: uniqueItems: "});
  cases.push_back({R"({"type": "integer", "multipleOf": 3})", kUnsupported, "#: multipleOf: "});
  cases.push_back({"{\"\\n\\u0007é" + Repeated("x", 200) + "\": 1}", kUnsupported, "'\\x0a\\x07"});
  CheckErrors(cases);
}

TEST(JsonSchemaErrors, NameKeywordsOfAnotherKind) {
  CheckErrors({
      {R"({"type": "text"})", kInvalid, "#: type: 'text' is not a type"},
      {R"({"type": 3})", kInvalid, "#: type: "},
      {R"({"type": ["string", null]})", kInvalid, "#: type: "},
      {R"({"enum": []})", kInvalid, "#: enum: "},
      {R"({"enum": "a"})", kInvalid, "#: enum: "},
      {R"({"anyOf": []})", kInvalid, "#: anyOf: "},
      {R"({"oneOf": {}})", kInvalid, "#: oneOf: "},
      {R"({"allOf": 1})", kInvalid, "#: allOf: "},
      {R"({"properties": []})", kInvalid, "#: properties: "},
      {R"({"required": true})", kInvalid, "#: required: "},
      {R"({"required": [1]})", kInvalid, "#: required: "},
      {R"({"prefixItems": {}})", kInvalid, "#: prefixItems: "},
      {R"({"minItems": -1})", kInvalid, "#: minItems: "},
      {R"({"minItems": 1.5})", kInvalid, "#: minItems: "},
      {R"({"maxLength": "3"})", kInvalid, "#: maxLength: "},
      {R"({"pattern": 3})", kInvalid, "#: pattern: "},
      {R"({"format": 3})", kInvalid, "#: format: "},
      {R"({"minimum": "3"})", kInvalid, "#: minimum: "},
      {R"({"exclusiveMinimum": true})", kInvalid, "#: exclusiveMinimum: "},
      {R"({"uniqueItems": 1})", kInvalid, "#: uniqueItems: "},
      {R"({"additionalProperties": 3})", kInvalid, "#/additionalProperties: it is not a schema"},
      {R"({"items": [{}], "prefixItems": [{}]})", kInvalid, "#: items: "},
  });
}

TEST(JsonSchemaErrors, NameReferencesThatLeadAstray) {
  CheckErrors({
      {R"({"$ref": "#"})", kInvalid, "#: its $ref and allOf lead back"},
      {R"({"$ref": 3})", kInvalid, "#: $ref: "},
      {R"({"$ref": "other.json"})", kInvalid, "#: $ref: 'other.json'"},
      {R"({"$ref": "#anchor"})", kInvalid, "#: $ref: '#anchor'"},
      {R"({"$ref": "#/$defs/x"})", kInvalid, "leads nowhere"},
      {R"({"prefixItems": [{"$ref": "#/prefixItems/1"}]})", kInvalid, "leads nowhere"},
      {R"({"$defs": {"a": 3}, "$ref": "#/$defs/a"})", kInvalid, "#/$defs/a: it is not a schema"},
      {R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})",
       kInvalid, "#/$defs/a: its $ref and allOf lead back"},
      {R"({"allOf": [{"type": "object"}, {"$ref": "#"}]})", kInvalid, "lead back"},
      {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", kInvalid,
       "one of its alternatives leads back"},
      {R"({"type": "object", "anyOf": [{"$ref": "#"}, {"required": ["a"]}]})", kInvalid,
       "leads back"},
      {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})", kInvalid,
       "always need themselves"},
      {R"({"items": {"$ref": "#"}, "minItems": 1})", kInvalid, "always need themselves"},
  });
}

TEST(JsonSchemaErrors, NameContradictions) {
  CheckErrors({
      {"false", kInvalid, "no value fits it"},
      {R"({"allOf": [{"type": "string"}, {"type": "null"}]})", kInvalid, "no type is left"},
      {R"({"type": "string", "enum": [1]})", kInvalid, "no value is left"},
      {R"({"properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}}, "required": ["a"]})",
       kInvalid, "#/properties/a: no value fits it: minLength is more than maxLength"},
      {R"({"type": "array", "minItems": 2, "maxItems": 1})", kInvalid,
       "minItems is more than maxItems"},
      {R"({"type": "number", "minimum": 2, "exclusiveMaximum": 2})", kInvalid,
       "the minimum is above"},
      {R"({"required": ["a"], "additionalProperties": false})", kInvalid, "no value fits it"},
      {R"({"items": false, "minItems": 1})", kInvalid, "no value fits it"},
  });
}

TEST(JsonSchemaErrors, NameWhatCannotBeFollowedTogether) {
  CheckErrors({
      {R"({"pattern": "a", "format": "date"})", kUnsupported, "#: format: "},
      {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})", kUnsupported, "two patterns"},
      {R"({"pattern": "^a+$", "maxLength": 3})", kUnsupported, "#: a length"},
      {R"({"type": "string", "enum": ["abc"], "maxLength": 2})", kUnsupported, "#: enum and const"},
      {R"({"type": "number", "minimum": 0.1234567890123456})", kUnsupported, "more than 15 digits"},
      {R"({"pattern": "(?=a)b"})", kUnsupported, "#/pattern: byte 1: lookahead"},
      {R"({"pattern": "(a"})", kInvalid, "#/pattern: byte 2: a group has no end"},
  });
}

TEST(JsonSchemaErrors, BoundWhatAClientMayAskFor) {
  std::string enumeration = "{\"enum\": [0", choices = "[{}",
              strings = "{\"properties\": {\"a\": {}";
  for (int i = 0; i < 40; ++i)
    strings += ",\"p" + std::to_string(i) + R"(": {"type": "string", "maxLength": 9000})";
  for (int i = 0; i < 5000; ++i) enumeration += "," + std::to_string(i);
  for (int i = 0; i < 40; ++i)
    choices += R"(,{"anyOf": [{"properties": {"p)" + std::to_string(i) +
               R"(": {}}}, {"properties": {"q)" + std::to_string(i) + R"(": {}}}]})";
  CheckErrors({
      {std::string(2 << 20, ' '), kTooLarge, "bytes are more than"},
      {Repeated("[", 100'000), kTooLarge, "nested deeper than 64"},
      {Repeated(R"({"items":)", 70) + "{}" + Repeated("}", 70), kTooLarge, "nested deeper"},
      {R"({"type": "array", "maxItems": 1000000000})", kTooLarge,
       "#: maxItems: 1000000000 is more than"},
      {R"({"type": "string", "minLength": 1e30})", kTooLarge, "#: minLength: "},
      {R"({"type": "integer", "minimum": 1e40})", kTooLarge, "more than 32 digits"},
      {strings + "}}", kTooLarge, "too large a grammar; lower its repetitions"},
      {enumeration + "]}", kTooLarge, "#: enum: 5001 are more than 4096"},
      {R"({"allOf": )" + choices + "]}", kTooLarge, "too large a grammar"},
  });
}

}  // namespace
}  // namespace foretoken
