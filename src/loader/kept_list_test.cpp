// SPDX-License-Identifier: Apache-2.0
#include "loader/kept_list.h"

#include <gtest/gtest.h>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::loader {
namespace {

namespace fs = std::filesystem;

struct KeptThing {
  int size = 0;
  bool operator==(const KeptThing&) const = default;
};
constexpr auto kThingFields = [](auto& fields, auto& thing) {
  fields.Integer("size", 1, 9, thing.size);
};
constexpr KeptList::Form kThings = {"things.json", "foretoken_things", "things", 1 << 10, 3};

class KeptThings : public testing::Test {
 protected:
  KeptList List() const { return KeptList(folder_.string(), kThings); }
  std::vector<KeptThing> Read() const { return List().Read<KeptThing>(kThingFields); }

  const fs::path folder_ = fixtures::TemporaryFolder();
};

TEST_F(KeptThings, AreReadAsTheyWereWrittenAndTheLastOnesGo) {
  EXPECT_TRUE(Read().empty());
  List().Write<KeptThing>({{.size = 4}, {.size = 2}, {.size = 7}, {.size = 1}}, kThingFields);
  EXPECT_EQ(Read(), (std::vector<KeptThing>{{.size = 4}, {.size = 2}, {.size = 7}}));
  EXPECT_EQ(WholeFile(folder_ / "things.json"),
            "{\"foretoken_things\":1,\"things\":[{\"size\":4},{\"size\":2},{\"size\":7}]}\n");
}

TEST_F(KeptThings, ThatCannotBeReadAreLeftOut) {
  List().Write<KeptThing>({{.size = 4}}, kThingFields);
  std::ofstream(folder_ / "things.json", std::ios::trunc)
      << R"({"foretoken_things":1,"things":[{"size":0},{"size":3},{"size":3,"more":1},5,)"
      << R"({"size":2.5},{"size":18446744073709551615},{},{"size":9}]})";
  EXPECT_EQ(Read(), (std::vector<KeptThing>{{.size = 3}, {.size = 9}}));
}

}  // namespace
}  // namespace foretoken::loader
