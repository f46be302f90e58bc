// SPDX-License-Identifier: Apache-2.0
#include "server/api/object_text.h"

#include <gtest/gtest.h>

namespace foretoken::server {
namespace {

TEST(MergedObjects, TheOwnMembersReplaceThoseOfTheDefaults) {
  EXPECT_EQ(MergedObjects("", ""), "");
  EXPECT_EQ(MergedObjects("{\"b\": 1}", ""), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("", "{\"b\": 1}"), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("{\"b\": 1, \"a\": {\"y\": 1, \"x\": 2}}", "{\"c\": [3], \"b\": false}"),
            "{\"b\": false, \"a\": {\"y\": 1, \"x\": 2}, \"c\": [3]}");
  EXPECT_EQ(MergedObjects("{\"a\\u0062\": 1}", "{\"ab\":2,\"\\u0061b\":3}"), "{\"ab\": 3}");
  EXPECT_EQ(MergedObjects("{}", "{ }"), "{}");
  EXPECT_EQ(MergedObjects("{\"a\": ", "{\"b\": 1}"), "{\"b\": 1}");
  EXPECT_EQ(MergedObjects("[1]", "{\"b\": 1}"), "{\"b\": 1}");
}

}  // namespace
}  // namespace foretoken::server
