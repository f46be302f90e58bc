// SPDX-License-Identifier: Apache-2.0
#include "base/argument_checks.h"

#include <gtest/gtest.h>

#include <variant>

#include "foretoken/option_keys.h"

namespace foretoken {
namespace {

TEST(EngineKeys, AreCheckedByTheirRanges) {
  EngineOptions options;
  int n_checked = 0;
  for (const EngineKey& key : EngineKeys()) {
    const EngineKey::Value value = key.find(options);
    const auto* const number = std::get_if<int*>(&value);
    if (number == nullptr || !key.range.is_set()) continue;
    ++n_checked;
    for (const int n : {**number, key.range.least, key.range.most})
      EXPECT_TRUE(CheckEngineOption(key.name, n)) << key.name << " " << n;
    for (const int n : {key.range.least - 1, key.range.most + 1}) {
      const Status refused = CheckEngineOption(key.name, n);
      ASSERT_FALSE(refused) << key.name << " " << n;
      EXPECT_EQ(refused.error().field, key.noun);
    }
  }
  EXPECT_EQ(n_checked, 7);
}

}  // namespace
}  // namespace foretoken
