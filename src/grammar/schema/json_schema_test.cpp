// SPDX-License-Identifier: Apache-2.0

#include "foretoken/structured_output.h"
#include "grammar/schema/grammar_testing.h"

namespace foretoken::grammar {
namespace {

struct SchemaCase {
  std::string schema;
  std::vector<std::string> texts;   // of its grammar
  std::vector<std::string> others;  // not of its grammar
};

void CheckTexts(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& c : cases) {
    const GrammarTexts grammar(JsonSchemaGrammar(c.schema));
    for (const std::string& text : c.texts)
      EXPECT_TRUE(grammar.Has(text)) << c.schema << "\n" << text;
    for (const std::string& text : c.others)
      EXPECT_FALSE(grammar.Has(text)) << c.schema << "\n" << text;
  }
}

TEST(JsonSchema, GivesTheTypesThatItNames) {
  CheckTexts({
      {R"({"type": "null"})", {"null"}, {"", "nul", "0", "\"null\"", " null", "null "}},
      {R"({"type": "boolean"})", {"true", "false"}, {"True", "0", "null"}},
      {R"({"type": "integer"})",
       {"0", "-0", "7", "-12", "9999999999999999"},
       {"01", "1.0", "1e3", "+1", "12345678901234567", "--1", ""}},
      {R"({"type": "number"})",
       {"0", "-0.5", "1e9", "12.25E-07", "3.1415926535897932"},
       {".5", "5.", "1e", "1e999", "0x1", "00.1", "NaN", "0.12345678901234567"}},
      {R"({"type": ["string", "null"]})", {"\"\"", "null", "\"a b\""}, {"true", "[]", "1"}},
      {R"({"type": ["integer", "number"]})", {"1", "1.5"}, {"\"\""}},
      {R"({"type": "array"})",
       {"[]", "[1,2]", "[1, \"a\", {\"b\": [null]}]"},
       {"[1,]", "[,]", "[1 ,2]", "[ ]", "{}", "[1,  2]", "[1\n]"}},
      {R"({"type": "object"})",
       {"{}", R"({"a":1})", R"({"a": {"": []}, "b":2})"},
       {R"({"a"})", R"({a:1})", R"({"a":1,})", R"({ "a":1})", "[]"}},
  });
}

TEST(JsonSchema, GivesAnyValueWhereNothingConstrains) {
  const std::vector<std::string> values = {"null",  "true",   "-1.5e3",
                                           "\"x\"", "[1,[]]", R"({"a": {}})"};
  const std::vector<std::string> no = {"", "nul", "[", "{1:2}", "'x'", "1,2"};
  CheckTexts({{"true", values, no},
              {"{}", values, no},
              {R"({"title": "T", "description": "d", "default": 3, "examples": [1], "$schema": "s",
              "$id": "i", "$comment": "c", "deprecated": true, "readOnly": true, "x-own": 1,
              "$defs": {"a": {"type": "string"}}, "format": "color"})",
               values, no}});
}

TEST(JsonSchema, KeepsStringsValid) {
  CheckTexts(
      {{R"({"type": "string"})",
        {R"("")", R"("é 😀 ")", R"("\" \\ \/ \b \f \n \r \t")", R"("\u00e9 \uD83D\uDE00 \uFFFF")"},
        {"\"\n\"", "\"\t\"", std::string("\"\0\"", 3), "\"\x7f\"", R"("\x41")", R"("\u12")",
         R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("a""b")", "\"\xff\"", "\"a"}},
       {R"({"type": "string", "minLength": 2, "maxLength": 3})",
        {R"("ab")", R"("éé")", R"("😀😀😀")", R"("\n\u0041")", R"("\ud83d\ude00x")"},
        {R"("")", R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
       {R"({"minLength": 1})", {R"("a")"}, {R"("")", "1"}},
       {R"({"type": "string", "maxLength": 0})", {R"("")"}, {R"("a")"}}});
}

TEST(JsonSchema, KeepsPatterns) {
  CheckTexts({
      {R"({"type": "string", "pattern": "^[a-c]+$"})",
       {R"("abc")"},
       {R"("")", R"("abd")", R"("xab")"}},
      {R"({"type": "string", "pattern": "b{2}"})",
       {R"("bb")", R"("xbby\n")", R"("bbb")"},
       {R"("b")", R"("bxb")"}},
      {R"({"type": "string", "pattern": "^x|y$"})", {R"("x1")", R"("1y")"}, {R"("1x")", R"("y1")"}},
      {R"({"pattern": "^\\d\\.\\\\\"$"})", {R"("1.\\\"")"}, {R"("1.\")", R"("1x\\\"")"}},
      {R"({"pattern": "^a\\sb$"})", {R"("a b")", R"("a\tb")"}, {"\"a\tb\"", R"("ab")"}},
      {R"({"pattern": "^[^a]$"})",
       {R"("b")", R"("\"")", R"("😀")", R"("\n")"},
       {R"("a")", "\"\n\"", R"(""")"}},
      {R"({"pattern": "^\\x01$"})", {R"("\u0001")"}, {"\"\x01\"", R"("\u0002")"}},
      {R"({"pattern": "^[A-Z]{3}$", "minLength": 2, "maxLength": 3})", {R"("ABC")"}, {R"("AB")"}},
      {R"({"pattern": "^$"})", {R"("")"}, {R"("a")"}},
  });
}

TEST(JsonSchema, KeepsFormats) {
  CheckTexts({
      {R"({"format": "date"})",
       {R"("2024-02-29")", R"("1999-12-31")", R"("2000-02-29")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-13-01")", R"("2024-04-31")",
        R"("24-01-01")"}},
      {R"({"type": "string", "format": "time"})",
       {R"("23:59:59Z")", R"("00:00:00.25+05:30")"},
       {R"("24:00:00Z")", R"("12:60:00Z")", R"("12:00:00")"}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("2024-02-29T01:02:03Z")"},
       {R"("2024-02-29 01:02:03Z")", R"("2024-02-29")"}},
      {R"({"type": "string", "format": "uuid"})",
       {R"("01234567-89ab-CDEF-0123-456789abcdef")"},
       {R"("0123456789abcdef0123456789abcdef")"}},
      {R"({"type": "string", "format": "ipv4"})",
       {R"("255.0.10.249")"},
       {R"("256.0.0.1")", R"("1.2.3")", R"("01.2.3.4")"}},
      {R"({"type": "string", "format": "email"})",
       {R"("a.b+c@mail.example.org")"},
       {R"("a@b")", R"("@x.org")", R"("a b@x.org")"}},
  });
}

TEST(JsonSchema, WritesMembersInOrderWithTheRightCommas) {
  CheckTexts({
      {R"({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "null"}},
           "required": ["a", "b"], "additionalProperties": false})",
       {R"({"b":1,"a":null})", R"({"b": 1, "a": null})"},
       {R"({"a":null,"b":1})", R"({"b":1})", "{}", R"({"b":1,"a":null,"c":1})",
        R"({"b":1 ,"a":null})"}},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}})",
       {"{}", R"({"a":1})", R"({"b":2})", R"({"c":3})", R"({"a":1,"b":2})", R"({"a":1,"c":3})",
        R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
       {R"({"b":2,"a":1})", R"({,"a":1})", R"({"a":1,})", R"({"a":1,"a":1})", R"({"d":1})", "1"}},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["b"]})",
       {R"({"b":2})", R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":3})", R"({"c":3,"b":2})"}},
      {R"({"properties": {"quote\"d\n": true}, "required": ["quote\"d\n"]})",
       {R"({"quote\"d\n":[1]})"},
       {R"({"quote":1})"}},
      {R"({"properties": {}, "additionalProperties": false})", {"{}"}, {R"({"a":1})"}},
      {R"({"properties": {"a": false, "b": {"const": 1}}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"required": ["k"]})", {R"({"k":1})", R"({"k":1,"z":2})"}, {"{}", R"({"z":2})"}},
      {R"({"properties": {"a": {"const": 1}}, "required": ["k"]})",
       {R"({"k":0})", R"({"a":1,"k":[]})"},
       {R"({"a":1})"}},
  });
}

TEST(JsonSchema, KeepsOtherMembersApartFromNamedOnes) {
  const std::string named =
      R"({"properties": {"ab": {"const": 1}, "é": {"const": 2}}, "additionalProperties": )";
  CheckTexts({
      {named + R"({"type": "boolean"}})",
       {"{}", R"({"ab":1})", R"({"x":true})", R"({"ab":1,"é":2,"x":true, "y": false})",
        R"({"a":true})", R"({"abc":true,"":false})", R"({"è":true})", R"({"b":true,"b":false})"},
       {R"({"ab":true})", R"({"é":true})", R"({"x":1})", R"({"x":true,"ab":1})",
        R"({"\u0061b":true})", R"({"a"b":true})"}},
      {named + "true}", {R"({"ab":1,"x":[null]})"}, {R"({"ab":2})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"a":1})", R"({"a":1, "\n":2})"},
       {R"({"a":"1"})"}},
      {R"({"additionalProperties": false})", {"{}"}, {R"({"a":1})"}},
      {R"({"properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": {"const": 0}})",
       {R"({"a":1})", R"({"a":1,"b":0})"},
       {"{}", R"({"b":0})", R"({"b":0,"a":1})"}},
      {R"({"required": ["z"], "additionalProperties": {"const": 0}})",
       {R"({"z":0})", R"({"z":0,"y":0})"},
       {"{}", R"({"z":1})"}},
  });
}

TEST(JsonSchema, CountsItems) {
  CheckTexts({
      {R"({"items": {"const": 1}})", {"[]", "[1]", "[1, 1,1]"}, {"[2]", "[1,2]", "1"}},
      {R"({"items": {"const": 1}, "minItems": 2, "maxItems": 3})",
       {"[1,1]", "[1,1,1]"},
       {"[]", "[1]", "[1,1,1,1]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "array", "maxItems": 1})", {"[]", "[{}]"}, {"[1,2]"}},
      {R"({"items": false})", {"[]"}, {"[1]", "[null]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}]})",
       {"[]", "[1]", "[1,2]"},
       {"[2]", "[1,2,3]", "[1,1]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "minItems": 1, "items": {"const": 3}, "maxItems": 4})",
       {"[1]", "[1,2]", "[1,2,3]", "[1,2,3,3]"},
       {"[]", "[1,3]", "[1,2,3,3,3]"}},
      {R"({"prefixItems": [{"const": 1}], "minItems": 3})",
       {"[1,\"a\",{}]"},
       {"[1]", "[1,2]", "[1,2,3,4]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"items": [{"const": 1}], "additionalItems": {"const": 2}})",
       {"[]", "[1]", "[1,2,2]"},
       {"[2]", "[1,1]"}},
      {R"({"items": {"const": 1}, "uniqueItems": false})", {"[1,1]"}, {"[2]"}},
  });
}

TEST(JsonSchema, WritesEnumeratedValuesAsTheyAre) {
  CheckTexts({
      {R"({"enum": ["a\"b", 1.50, null, [1, {"k": "é"}], 10000000000000000000000]})",
       {R"("a\"b")", "1.50", "null", R"([1,{"k":"é"}])", R"([1, {"k": "é"}])",
        "10000000000000000000000"},
       {"1.5", R"("a")", "[1]"}},
      {R"({"type": "string", "enum": ["x", 1]})", {R"("x")"}, {"1"}},
      {R"({"type": "integer", "enum": [1, 2.0, 2.5]})", {"1", "2.0"}, {"2.5"}},
      {R"({"const": {}})", {"{}"}, {R"({"a":1})"}},
      {R"({"const": 2, "enum": [1, 2]})", {"2"}, {"1"}},
  });
}

TEST(JsonSchema, FollowsAlternatives) {
  CheckTexts({
      {R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "null"}, {"\"\"", "1.5"}},
      {R"({"oneOf": [{"const": "a"}, {"const": "b"}]})", {R"("a")", R"("b")"}, {R"("c")"}},
      {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
           "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
       {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {"{}"}},
      {R"({"anyOf": [{"type": "string", "minLength": 1}, {}], "type": "string", "maxLength": 2})",
       {R"("ab")", R"("")"},
       {R"("abc")", "1"}},
      {R"({"anyOf": [{"type": "integer"}, {"type": "string"}], "oneOf": [{"minimum": 5}, {"type": "string"}]})",
       {"5", R"("x")"},
       {"4"}},
      {R"({"anyOf": [false, {"const": 1}]})", {"1"}, {"2"}},
  });
}

TEST(JsonSchema, MergesAllOf) {
  CheckTexts({
      {R"({"allOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]},
                     {"properties": {"y": {"const": 0}, "x": {"minimum": 3}}}]})",
       {R"({"x":3})", R"({"x":44,"y":0})"},
       {R"({"x":2})", R"({"y":0})", R"({"x":3.5})"}},
      {R"({"allOf": [{"type": ["integer", "null"]}, {"type": ["integer", "string"]}], "maximum": 1})",
       {"1", "-7"},
       {"2", "null", "\"\""}},
      {R"({"type": "array", "items": {"type": "integer"}, "allOf": [{"items": {"minimum": 0}}, {"maxItems": 1}]})",
       {"[0]", "[]"},
       {"[-1]", "[1,2]"}},
      {R"({"allOf": [{"properties": {"a": {"const": 1}}, "additionalProperties": false},
                     {"properties": {"b": {"const": 1}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":1})", R"({"c":1})"}},
      {R"({"allOf": [{"anyOf": [{"const": 1}, {"const": 2}]}, {"anyOf": [{"const": 2}, {"const": 3}]}]})",
       {"2"},
       {"1", "3"}},
  });
}

TEST(JsonSchema, FollowsReferences) {
  CheckTexts({
      {R"({"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}})",
       {R"({"a":1})"},
       {R"({"a":"1"})"}},
      {R"({"definitions": {"a/b~c": {"const": 1}}, "$ref": "#/definitions/a~1b~0c"})",
       {"1"},
       {"2"}},
      {R"({"$defs": {"é": {"const": 1}}, "$ref": "#/$defs/%C3%A9"})", {"1"}, {"2"}},
      {R"({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 2})", {"2"}, {"1"}},
      {R"({"prefixItems": [{"const": 7}, {"$ref": "#/prefixItems/0"}]})", {"[7,7]"}, {"[7,8]"}},
      {R"({"properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["value"]})",
       {R"({"value":1})", R"({"value":1,"next":{"value":2,"next":{"value":3}}})"},
       {R"({"value":1,"next":{}})", R"({"next":{"value":1}})"}},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"anyOf": [{"type": "null"},
           {"type": "array", "items": {"$ref": "#/$defs/tree"}, "minItems": 2, "maxItems": 2}]}}})",
       {"null", "[null,null]", "[[null,null],null]"},
       {"[null]", "[]"}},
      // The first alternative can never end, so only the second is left.
      {R"({"anyOf": [{"items": {"$ref": "#/anyOf/0"}, "minItems": 1}, {"const": 1}]})",
       {"1"},
       {"[1]", "[[1]]"}},
  });
}

TEST(JsonSchema, BoundsNumbers) {
  CheckTexts({
      {R"({"type": "integer", "minimum": -3, "exclusiveMaximum": 12})",
       {"-3", "0", "9", "10", "11"},
       {"-4", "12", "-0", "03", "100"}},
      {R"({"type": "integer", "minimum": 0.5, "maximum": 2.5})", {"1", "2"}, {"0", "3"}},
      {R"({"type": "integer", "exclusiveMinimum": 5})",
       {"6", "10", "1234567890123456"},
       {"5", "0", "-6"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1})",
       {"0", "1", "0.5", "0.0", "1.0", "0.125"},
       {"1.1", "-0.1", "1.01", "2", "1e0", "-1"}},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e2})",
       {"0.001", "99.9", "50"},
       {"0", "0.0", "100", "100.0"}},
      {R"({"type": "number", "multipleOf": 1, "minimum": 2})", {"2", "30"}, {"2.5", "1"}},
      {R"({"minimum": 1, "maximum": 1})", {"1", "1.0"}, {"1.1", "0"}},
  });
}

TEST(JsonSchema, IsDeterministic) {
  const std::string schema =
      R"({"properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "b": {"enum": [1, 2]}},
          "additionalProperties": {"type": "number", "minimum": 0}})";
  const auto one = JsonSchemaGrammar(schema), two = JsonSchemaGrammar(schema);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(*one, *two);
}

TEST(JsonGrammar, GivesObjectsOnly) {
  const GrammarTexts grammar(JsonGrammar());
  for (const char* text : {"{}", R"({"a": [1, {"b":null}]})"})
    EXPECT_TRUE(grammar.Has(text)) << text;
  for (const char* text : {"[]", "1", "{", R"({"a":})", R"({"a":1}})"})
    EXPECT_FALSE(grammar.Has(text)) << text;
}

TEST(ChoiceGrammar, GivesOneOfTheTexts) {
  const std::vector<std::string> choices = {"yes", "no\n\"", "né", "yes, but"};
  const GrammarTexts grammar(ChoiceGrammar(choices));
  for (const std::string& choice : choices) EXPECT_TRUE(grammar.Has(choice)) << choice;
  for (const char* text : {"", "ye", "yesno", "no", "YES"}) EXPECT_FALSE(grammar.Has(text)) << text;
  EXPECT_FALSE(ChoiceGrammar({}).has_value());
  EXPECT_FALSE(ChoiceGrammar(std::vector<std::string>{"a", ""}).has_value());
  EXPECT_FALSE(ChoiceGrammar(std::vector<std::string>{"\xff"}).has_value());
  EXPECT_FALSE(ChoiceGrammar(std::vector<std::string>(4097, "a")).has_value());
}

}  // namespace
}  // namespace foretoken::grammar
