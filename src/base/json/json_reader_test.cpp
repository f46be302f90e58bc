// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_reader.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Distinct = JsonLimits::Distinct;
using ErrorKind = JsonError::Kind;

std::string Again(std::string_view text) {
  const auto read = ReadJson(text);
  return read ? read->dump() : "byte " + std::to_string(read.error().byte);
}

ErrorKind KindOf(std::string_view text, const JsonLimits& limits) {
  const auto read = ReadJson(text, limits);
  EXPECT_FALSE(read.has_value()) << text;
  return read ? ErrorKind::kSyntax : read.error().kind;
}

TEST(JsonReader, MembersKeepTheirOrder) {
  EXPECT_EQ(Again(" {\"b\" : [1, {}], \"a\":{\"z\":null,\n\"y\":true} ,\"c\":[ ] }\t"),
            R"({"b":[1,{}],"a":{"z":null,"y":true},"c":[]})");
  EXPECT_EQ(Again("\xEF\xBB\xBF false"), "false");
}

TEST(JsonReader, NumbersAreWholeWhereSixtyFourBitsHoldThem) {
  const auto list = ReadJson(
      "[-0, 9223372036854775807, 9223372036854775808, 18446744073709551616, -9223372036854775809, "
      "1.0, 1e3, 1e-400, 0.0001, 1e15, 123456789012345.5]");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ((*list)[0].integer(), 0);
  EXPECT_EQ((*list)[1].integer(), INT64_MAX);
  EXPECT_EQ((*list)[2].natural(), std::uint64_t{1} << 63);
  EXPECT_EQ((*list)[2].integer(), std::nullopt);
  for (std::size_t i = 3; i < 8; ++i) EXPECT_EQ((*list)[i].kind(), Json::Kind::kNumber) << i;
  EXPECT_EQ(list->dump(),
            "[0,9223372036854775807,9223372036854775808,1.8446744073709552e+19,"
            "-9.223372036854776e+18,1.0,1000.0,0.0,0.0001,1e+15,123456789012345.5]");
}

TEST(JsonReader, NumbersAreTheNearestToWhatIsWritten) {
  EXPECT_EQ(
      Again("[9007199254740993.0,2.2250738585072011e-308,0.3333333333333333148296162562473909929,"
            "1.7976931348623158e308,5e-324,-0.0,-1e-99999999999999999999]"),
      "[9.007199254740992e+15,2.225073858507201e-308,0.3333333333333333,"
      "1.7976931348623157e+308,5e-324,-0.0,0.0]");
  EXPECT_EQ(Again("1.7976931348623159e308"), "byte 23");
  EXPECT_EQ(Again("[-1e99999999999999999999]"), "byte 8");
}

TEST(JsonReader, EscapesStandForCharacters) {
  EXPECT_EQ(ReadJson(R"("\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00")")->text(),
            "\"\\/\b\f\n\r\té€😀");
}

TEST(JsonReader, TellsTheByteThatIsWrong) {
  constexpr std::pair<const char*, int> kWrong[] = {
      {"", 1},           {"{", 2},           {"[1,]", 4},      {"[1 2]", 4}, {"{\"a\" 1}", 6},
      {"{1:2}", 2},      {"tru]", 4},        {"[01]", 3},      {"[-]", 3},   {"[1.]", 4},
      {"[1e+]", 5},      {"1 \"ab\"", 3},    {"[1}", 3},       {"\"a", 3},   {"\"\\x\"", 3},
      {"\"\x01\"", 2},   {"\"\\u12g4\"", 6}, {"\"\\udc00", 8}, {"1e400", 6}, {"[nul", 5},
      {"\"\\ud800a", 8}, {"\"\xC3\"", 2},    {"\"\xC0\"", 2},  {"{} x", 4},  {"\"\xE2\x82", 4}};
  for (const auto& [text, byte] : kWrong)
    EXPECT_EQ(Again(text), "byte " + std::to_string(byte)) << text;
}

TEST(JsonReader, BytesOfValueZeroAndHalvesOfPairsAreWrong) {
  for (const std::string text : {"{}?", "{}? ", "[1,?2]", "[?]", "\"a?\"", "?", "{\"a?\":1}"}) {
    std::string with_zero = text;
    with_zero[text.find('?')] = '\0';
    EXPECT_EQ(Again(with_zero), "byte " + std::to_string(text.find('?') + 1)) << text;
  }
  EXPECT_EQ(Again(R"(["\udc00"])"), "byte 10");
  EXPECT_EQ(Again(R"({"\udbff":1})"), "byte 9");
  EXPECT_EQ(Again("[\"\xED\xA0\x80\"]"), "byte 3");
}

TEST(JsonReader, WhatAnObjectHasTwiceIsAnErrorOrCountsLast) {
  constexpr std::string_view kInner = R"({"a": [0, {"b": 1, "c": 2, "\u0062": 3}], "d": 4})",
                             kOuter = R"({"b": 1, "a": 2, "b": [3]})";
  EXPECT_EQ(Again(kInner), R"({"a":[0,{"b":3,"c":2}],"d":4})");
  EXPECT_EQ(Again(kOuter), R"({"b":[3],"a":2})");
  EXPECT_TRUE(ReadJson(kInner, {.distinct = Distinct::kOutermost}).has_value());
  EXPECT_EQ(KindOf(kOuter, {.distinct = Distinct::kOutermost}), ErrorKind::kTwice);
  const auto read = ReadJson(kInner, {.distinct = Distinct::kAll});
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind, ErrorKind::kTwice);
  EXPECT_EQ(read.error().name, "b");
  EXPECT_EQ(read.error().path, (std::vector<std::string>{"a", "1"}));
}

TEST(JsonReader, DepthAndMemoryAreBounded) {
  EXPECT_TRUE(ReadJson("[[{}]]", {.most_depth = 3}).has_value());
  EXPECT_EQ(KindOf("[[{\"a\": [", {.most_depth = 3}), ErrorKind::kDepth);
  EXPECT_EQ(KindOf(std::string(1 << 20, '['), {}), ErrorKind::kDepth);
  for (const char* const text :
       {"[1,1,1,1]", "[\"0123456789012345678901234567890123456789\"]", "{\"0\":{}}", "[[],[]]"}) {
    EXPECT_TRUE(ReadJson(text, {.most_memory = 300}).has_value()) << text;
    EXPECT_EQ(KindOf(text, {.most_memory = 150}), ErrorKind::kMemory) << text;
  }
}

TEST(JsonReader, ValuesKnowHowTheyWereWritten) {
  const std::string text =
      "\n{ \"a\" : {\"z\": [1, {\"b\": \"}\\u0061\"}], \"y\":2.50 } ,\"c\" :-1.5e3\n, \"d\":[]}";
  auto read = ReadJson(text, {.keeps_text = true});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->written(), text.substr(1));
  EXPECT_EQ(read->at("a").written(), "{\"z\": [1, {\"b\": \"}\\u0061\"}], \"y\":2.50 }");
  EXPECT_EQ(read->at("a").at("y").written(), "2.50");
  EXPECT_EQ(read->at("c").source(), "-1.5e3");
  EXPECT_EQ(read->at("d").written(), "[]");
  Json made = {{"x", read->at("a").at("z")}, {"y", "\n"}};
  EXPECT_EQ(made.written(), "{\"x\": [1, {\"b\": \"}\\u0061\"}], \"y\": \"\\n\"}");
  (*read)["c"] = 1;
  read->find("d")->push_back(2);
  EXPECT_EQ(read->written(),
            "{\"a\": {\"z\": [1, {\"b\": \"}\\u0061\"}], \"y\":2.50 }, \"c\": 1, \"d\": [2]}");
}

}  // namespace
}  // namespace foretoken
