// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_member.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken::server {
namespace {

TEST(JsonMember, IsTheTextBetweenColonAndComma) {
  const std::string json =
      "\n{ \"a\" : {\"z\": [1, {\"b\": \"}\"}], \"y\":2 } ,\"b\":\"x\\\"},{\", \"c\" :-1.5e3\n, "
      "\"d\":[],\"e\": true }";
  EXPECT_EQ(RawMember(json, {"a"}), "{\"z\": [1, {\"b\": \"}\"}], \"y\":2 }");
  EXPECT_EQ(RawMember(json, {"b"}), "\"x\\\"},{\"");
  EXPECT_EQ(RawMember(json, {"c"}), "-1.5e3");
  EXPECT_EQ(RawMember(json, {"d"}), "[]");
  EXPECT_EQ(RawMember(json, {"e"}), "true");
  EXPECT_EQ(RawMember(json, {"a", "z"}), "[1, {\"b\": \"}\"}]");
  EXPECT_EQ(RawMember(json, {"a", "y"}), "2");
}

TEST(JsonMember, IsFoundBehindAByteOrderMark) {
  EXPECT_EQ(RawMember("\xEF\xBB\xBF{\"a\": {\"b\": 1}}", {"a", "b"}), "1");
  EXPECT_EQ(RawElements("\xEF\xBB\xBF [1, 2]").size(), 2u);
}

TEST(JsonMember, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(RawMember("{}", {"a"}), "");
  EXPECT_EQ(RawMember("[1]", {"a"}), "");
  EXPECT_EQ(RawMember("{\"b\": {\"a\": 1}}", {"a"}), "");
  EXPECT_EQ(RawMember("{\"a\": [{\"b\": 1}]}", {"a", "b"}), "");
  EXPECT_EQ(RawMember("{\"a\": \"b\"}", {"b"}), "");
}

TEST(JsonMember, SplitsListsIntoTheirElements) {
  using Elements = std::vector<std::string_view>;
  EXPECT_EQ(RawElements("[]"), Elements());
  EXPECT_EQ(RawElements("[ ]"), Elements());
  EXPECT_EQ(RawElements("[1]"), Elements({"1"}));
  EXPECT_EQ(RawElements("[ {\"a\": [1, \"]\"]} ,\"x\\\",\" , [2,3],-1e5 ]"),
            Elements({"{\"a\": [1, \"]\"]}", "\"x\\\",\"", "[2,3]", "-1e5"}));
}

TEST(JsonMember, ReadsEscapesOfNames) {
  EXPECT_EQ(RawMember("{\"\\u0061\\\"\": 1, \"a\": 2}", {"a\""}), "1");
  EXPECT_EQ(RawMember("{\"\\\\\": 1, \"a\": 2}", {"a"}), "2");
}

TEST(JsonMember, OfTheOwnObjectReplaceThoseOfTheDefaults) {
  EXPECT_EQ(MergedObjects("", ""), "");
  EXPECT_EQ(MergedObjects("{\"b\": 1}", ""), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("", "{\"b\": 1}"), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("{\"b\": 1, \"a\": {\"y\": 1, \"x\": 2}}", "{\"c\": [3], \"b\": false}"),
            "{\"b\": false, \"a\": {\"y\": 1, \"x\": 2}, \"c\": [3]}");
  EXPECT_EQ(MergedObjects("{\"a\\u0062\": 1}", "{\"ab\":2,\"\\u0061b\":3}"), "{\"a\\u0062\": 3}");
  EXPECT_EQ(MergedObjects("{}", "{ }"), "{}");
  EXPECT_EQ(MergedObjects("{\"a\": ", "{\"b\": 1}"), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("[1]", "{\"b\": 1}"), "{\"b\": 1}");
}

}  // namespace
}  // namespace foretoken::server
