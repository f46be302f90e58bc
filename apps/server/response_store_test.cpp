// SPDX-License-Identifier: Apache-2.0
#include "server/response_store.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken::server {
namespace {

constexpr std::size_t kKiB = 1 << 10;

StoredResponse ResponseOf(std::string id, std::string previous = {}, std::size_t bytes = 0) {
  return {.id = std::move(id),
          .previous = std::move(previous),
          .input = {{"in", "{}"}},
          .output = {{"out", "{}"}},
          .head = std::string(bytes, 'h')};
}

TEST(ResponseStore, AResponseIsItsClientsAlone) {
  ResponseStore store(100 * kKiB);
  ASSERT_TRUE(store.Put("a", ResponseOf("r1")));
  ASSERT_NE(store.Find("a", "r1"), nullptr);
  EXPECT_EQ(store.Find("a", "r1")->output.front().id, "out");
  EXPECT_EQ(store.Find("b", "r1"), nullptr);
  EXPECT_TRUE(store.FindChain("b", "r1", 9).missing);
  EXPECT_FALSE(store.Delete("b", "r1"));
  EXPECT_TRUE(store.Delete("a", "r1"));
  EXPECT_FALSE(store.Delete("a", "r1"));
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(ResponseStore, AChainIsWholeOrMissing) {
  ResponseStore store(100 * kKiB);
  store.Put("a", ResponseOf("r1"));
  store.Put("a", ResponseOf("r2", "r1"));
  store.Put("a", ResponseOf("r3", "r2"));
  const auto found = store.FindChain("a", "r3", 3);
  ASSERT_EQ(found.chain.size(), 3U);
  EXPECT_FALSE(found.missing || found.too_long);
  EXPECT_EQ(found.chain.front()->id, "r1");
  EXPECT_TRUE(store.FindChain("a", "r3", 2).too_long);
  store.Delete("a", "r1");
  EXPECT_TRUE(store.FindChain("a", "r3", 3).missing);
  EXPECT_EQ(store.FindChain("a", "r3", 3).chain.size(), 2U);
  EXPECT_TRUE(store.FindChain("a", "r1", 3).chain.empty());
}

TEST(ResponseStore, WhatWasUsedLeastRecentlyGoes) {
  ResponseStore store(100 * kKiB);
  for (const char* const id : {"r1", "r2", "r3", "r4"})
    store.Put("a", ResponseOf(id, {}, 20 * kKiB));
  EXPECT_NE(store.Find("a", "r1"), nullptr);
  EXPECT_FALSE(store.FindChain("a", "r2", 1).missing);
  store.Put("a", ResponseOf("r5", {}, 20 * kKiB));
  store.Put("a", ResponseOf("r6", {}, 20 * kKiB));
  EXPECT_LE(store.bytes(), 100 * kKiB);
  std::string kept;
  for (const char* const id : {"r1", "r2", "r3", "r4", "r5", "r6"})
    if (store.Find("a", id) != nullptr) kept += id;
  EXPECT_EQ(kept, "r1r2r5r6");
}

TEST(ResponseStore, AFloodCostsOthersAShareAtMost) {
  ResponseStore store(100 * kKiB);
  for (int i = 0; i < 8; ++i)  // 9 KiB each: most of the store, and each client's below its share
    store.Put("client " + std::to_string(i / 2), ResponseOf("r" + std::to_string(i), {}, 9 * kKiB));
  for (int i = 0; i < 100; ++i)
    store.Put("flood", ResponseOf("f" + std::to_string(i), {}, 9 * kKiB));
  int kept = 0;
  for (int i = 0; i < 8; ++i)
    kept += store.Find("client " + std::to_string(i / 2), "r" + std::to_string(i)) != nullptr;
  EXPECT_GE(kept, 6);
  EXPECT_LE(store.bytes(), 100 * kKiB);
}

TEST(ResponseStore, WhoHoldsMoreThanItsShareMakesRoomForOthers) {
  ResponseStore store(100 * kKiB);
  store.Put("b", ResponseOf("old", {}, kKiB));
  for (int i = 0; i < 12; ++i) store.Put("a", ResponseOf("a" + std::to_string(i), {}, 9 * kKiB));
  for (int i = 0; i < 20; ++i)
    store.Put("c" + std::to_string(i), ResponseOf("c" + std::to_string(i), {}, 2 * kKiB));
  EXPECT_NE(store.Find("b", "old"), nullptr);
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(store.Find("c" + std::to_string(i), "c" + std::to_string(i)), nullptr) << i;
}

TEST(ResponseStore, WhoHoldsMuchMakesRoomForItself) {
  ResponseStore store(100 * kKiB);
  const auto put = [&store](const std::string& client, int n) {
    for (int i = 0; i < n; ++i)
      store.Put(client, ResponseOf(client + std::to_string(i), {}, 9 * kKiB));
  };
  put("a", 4);
  put("b", 4);
  for (int i = 0; i < 30; ++i) store.Put("a", ResponseOf("a+" + std::to_string(i), {}, 9 * kKiB));
  for (int i = 0; i < 4; ++i) EXPECT_NE(store.Find("b", "b" + std::to_string(i)), nullptr) << i;
  for (int i = 0; i < 30; ++i) store.Put("b", ResponseOf("b+" + std::to_string(i), {}, 9 * kKiB));
  EXPECT_NE(store.Find("a", "a+29"), nullptr);
  EXPECT_NE(store.Find("a", "a+26"), nullptr);
}

TEST(ResponseStore, BelowTheirSharesAllClientsTakeTurns) {
  ResponseStore store(100 * kKiB);
  for (const char* const id : {"r1", "r2", "r3", "r4"})
    store.Put(id, ResponseOf(id, {}, 22 * kKiB));
  EXPECT_NE(store.Find("r1", "r1"), nullptr);
  store.Put("r5", ResponseOf("r5", {}, 22 * kKiB));
  EXPECT_NE(store.Find("r1", "r1"), nullptr);
  EXPECT_EQ(store.Find("r2", "r2"), nullptr);
}

TEST(ResponseStore, WhatIsLargerThanAShareIsNotKept) {
  ResponseStore store(100 * kKiB);
  EXPECT_TRUE(store.Put("a", ResponseOf("r1", {}, 20 * kKiB)));
  EXPECT_FALSE(store.Put("a", ResponseOf("r2", {}, 25 * kKiB)));
  EXPECT_EQ(store.Find("a", "r2"), nullptr);
  EXPECT_NE(store.Find("a", "r1"), nullptr);
}

TEST(ResponseStore, EveryPartOfAResponseCounts) {
  const std::size_t empty = BytesOf({});
  const std::string text(kKiB, 'a');
  EXPECT_GE(BytesOf({.head = text}), empty + kKiB);
  EXPECT_GE(BytesOf({.tail = text}), empty + kKiB);
  EXPECT_GE(BytesOf({.previous = text}), empty + kKiB);
  EXPECT_GE(BytesOf({.input = {{"", text}}}), empty + kKiB + sizeof(StoredItem));
  EXPECT_GE(BytesOf({.output = {{text, ""}}}), empty + kKiB + sizeof(StoredItem));
}

TEST(ResponseStore, ManyThreadsMayUseIt) {
  ResponseStore store(64 * kKiB);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&store, client = std::to_string(t)] {
      std::string before;
      for (int i = 0; i < 2000; ++i) {
        std::string id = client + "_" + std::to_string(i);
        store.Put(client, ResponseOf(id, i % 8 == 0 ? "" : before, kKiB));
        const auto found = store.FindChain(client, id, 8);
        EXPECT_TRUE(found.chain.empty() || found.chain.back()->id == id);
        if (i % 3 == 0) store.Delete(client, before);
        before = std::move(id);
      }
    });
  threads.clear();
  EXPECT_LE(store.bytes(), 64 * kKiB);
}

}  // namespace
}  // namespace foretoken::server
