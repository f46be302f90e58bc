// SPDX-License-Identifier: Apache-2.0
#include "base/seeded_hash.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <set>

#include "base/hash.h"
#include "base/index_table.h"

namespace foretoken {
namespace {

TEST(SeededHash, IsThatOfTheBytes) {
  const std::string text = "a name";
  EXPECT_EQ(SeededHashOf(text), SeededHashOf(std::string_view("a name")));
  EXPECT_EQ(SeededHasher()(text), SeededHashOf(text));
  EXPECT_EQ(SeededHasher()(std::uint64_t{7}), SeededHashOf(std::uint64_t{7}));
  std::set<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 1000; ++i) hashes.insert(SeededHashOf(i));
  for (std::size_t n = 0; n < 500; ++n) hashes.insert(SeededHashOf(std::string(n, 'a')));
  EXPECT_EQ(hashes.size(), 1500u);
}

// What the hash is without random numbers, and so in every process.
TEST(SeededHash, IsNotTheOneThatEveryoneKnows) {
  for (const std::size_t n : {1, 3, 8, 16, 100, 200, 1000}) {
    const std::string text(n, 'a');
    EXPECT_NE(SeededHashOf(text), HashOf(text)) << n;
  }
}

// The hash of a text in another process: this program, which runs only the test below.
std::string HashInAnotherProcess() {
  const std::string command = "/proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter=SeededHash.IsPrintedForAnotherProcess";
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  for (std::array<char, 256> part; fgets(part.data(), part.size(), pipe) != nullptr;)
    output += part.data();
  pclose(pipe);
  const std::size_t at = output.find("hash=");
  return at == std::string::npos ? "" : output.substr(at, 21);
}

TEST(SeededHash, IsPrintedForAnotherProcess) {
  const std::uint64_t hash = SeededHashOf(std::string("a")) + SeededHashOf(std::uint64_t{1});
  std::printf("hash=%016llx\n", static_cast<unsigned long long>(hash));
}

TEST(SeededHash, DiffersFromProcessToProcess) {
  const std::string one = HashInAnotherProcess(), other = HashInAnotherProcess();
#ifndef __x86_64__
  if (one.empty()) GTEST_SKIP() << "an emulator runs this program, which cannot start itself";
#endif
  ASSERT_EQ(one.size(), 21u);
  ASSERT_EQ(other.size(), 21u);
  EXPECT_NE(one, other);
}

TEST(IndexTable, FindsWhatWasInserted) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("name" + std::to_string(i));
  IndexTable table;
  const auto hash_of = [&](std::int32_t i) {
    return SeededHashOf(names[static_cast<std::size_t>(i)]);
  };
  const auto find = [&](const std::string& name) {
    return table.Find(SeededHashOf(name),
                      [&](std::int32_t i) { return names[static_cast<std::size_t>(i)] == name; });
  };
  for (std::int32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(find(names[static_cast<std::size_t>(i)]), IndexTable::kNone);
    table.Insert(hash_of(i), i, hash_of);
  }
  for (std::int32_t i = 0; i < 1000; ++i) EXPECT_EQ(find(names[static_cast<std::size_t>(i)]), i);
  EXPECT_EQ(find("another"), IndexTable::kNone);
}

}  // namespace
}  // namespace foretoken
