// SPDX-License-Identifier: Apache-2.0
#include "comm/ranks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdlib>

#include "comm/mpi.h"

namespace foretoken::comm {
namespace {

TEST(Ranks, OneProcessAloneLeadsAndSendsNothing) {
  Alone alone;
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_TRUE(alone.alone() && alone.leads());
  EXPECT_FALSE(alone.host(0).empty());
  std::array bytes = {std::byte{1}, std::byte{2}};
  const auto before = bytes;
  const std::array begins = {0, 2};
  EXPECT_TRUE(alone.Gather(bytes.data(), begins) && alone.Broadcast(bytes) && alone.Await(bytes));
  EXPECT_EQ(bytes, before);
  EXPECT_EQ(alone.traffic().gathers, 0);
  alone.ExpectEnd();
  alone.Abort("nobody else ends");
  EXPECT_EQ(alone.why(), "");
}

class Started : public testing::Test {
 protected:
  static constexpr std::array kNames = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                        "SLURM_STEP_NUM_TASKS"};
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }
};

TEST_F(Started, AProcessThatNothingStartedIsAlone) {
  EXPECT_EQ(StartedRanks(), 1);
}

TEST_F(Started, MpirunSaysHowManyRanksThereAre) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    setenv(name, "3", 1);
    EXPECT_EQ(StartedRanks(), 3) << name;
    unsetenv(name);
  }
}

TEST_F(Started, SlurmDoesSoWhereItConnectsThem) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(StartedRanks(), 1);
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(StartedRanks(), 4);
}

}  // namespace
}  // namespace foretoken::comm
