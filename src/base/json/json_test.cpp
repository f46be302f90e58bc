// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretoken {
namespace {

TEST(Json, BracesAreObjectsOrArrays) {
  const Json json = {{"a", 1}, {"b", {1, 2.5f, "x"}}, {"c", {{"d", nullptr}}}, {"e", true}};
  EXPECT_EQ(json.dump(), R"({"a":1,"b":[1,2.5,"x"],"c":{"d":null},"e":true})");
  EXPECT_EQ(Json::array({{{"a", 1}}}).dump(), R"([{"a":1}])");
  EXPECT_EQ(Json::array({{"a", 1}, {"b", 2}}).dump(), R"([["a",1],["b",2]])");
  EXPECT_EQ(Json({{"a", 1}, {"a", 2}}).dump(), R"({"a":1})");
  EXPECT_EQ(Json(std::vector<int>{1, 2}).dump(), "[1,2]");
}

TEST(Json, IsChangedInPlace) {
  Json json;
  json["b"] = 1;
  json["a"]["x"].push_back("y");
  json["b"] = false;
  json.update({{"c", 2}, {"a", 3}});
  EXPECT_EQ(json.dump(), R"({"b":false,"a":3,"c":2})");
  json.erase("a");
  json.erase("nothing");
  EXPECT_EQ(json.dump(), R"({"b":false,"c":2})");
  EXPECT_TRUE(json.at("nothing").at("in").is_null());
}

TEST(Json, ManyMembersAreFoundByName) {
  Json json = Json::object();
  for (int i = 0; i < 1000; ++i) json[std::to_string(i)] = i;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(json.at(std::to_string(i)), i);
  const Json copy = json;
  json.erase("7");
  EXPECT_FALSE(json.contains("7"));
  EXPECT_EQ(json.at("8"), 8);
  EXPECT_EQ(copy.at("7"), 7);
}

TEST(Json, NumbersAreEqualByValueAndObjectsInAnyOrder) {
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_FALSE(Json(-1) == Json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(Json({{"a", 1}, {"b", 2}}), Json({{"b", 2}, {"a", 1}}));
  EXPECT_FALSE(Json({{"a", 1}}) == Json({{"b", 1}}));
  EXPECT_FALSE(Json() == Json(false));
  EXPECT_TRUE(Json("a") == "a");
}

TEST(Json, IsWrittenInSeveralStyles) {
  const Json json = {{"b", {1, Json::object()}}, {"a", "é\x7F😀"}, {"c", Json::array()}};
  EXPECT_EQ(json.dump({.indent = 1}),
            "{\n \"b\": [\n  1,\n  {}\n ],\n \"a\": \"é\x7F😀\",\n \"c\": []\n}");
  EXPECT_EQ(json.dump({.ascii = true, .sorted = true}),
            R"({"a":"\u00e9\u007f\ud83d\ude00","b":[1,{}],"c":[]})");
}

TEST(Json, WhatJsonLacksIsReplaced) {
  EXPECT_EQ(Json("a\xC3(\xE2\x82\xFF\n\x1F").dump(), "\"a\uFFFD(\uFFFD\uFFFD\\n\\u001f\"");
  EXPECT_EQ(Json({std::numeric_limits<double>::infinity(), -0.0, 0.1f, 5e-324}).dump(),
            "[null,-0.0,0.10000000149011612,5e-324]");
}

}  // namespace
}  // namespace foretoken
