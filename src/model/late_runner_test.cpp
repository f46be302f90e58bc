// SPDX-License-Identifier: Apache-2.0
#include "model/late_runner.h"

#include <gtest/gtest.h>

#include <thread>

#include "fixtures/tiny_model.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"

namespace foretoken::model {
namespace {

Result<std::unique_ptr<LocalRunner>> LateNetwork(const formats::Checkpoint& file,
                                                 ThreadPool& pool) {
  ModelConfig config = *ConfigFromMetadata(file.metadata());
  config.vocabulary = *VocabularyRows(file);
  return LocalRunner::Load(
      file, config,
      {.max_rows = 4, .max_logit_rows = 4, .max_positions = 16, .cache = {.n_blocks = 1}},
      kernels::KernelsFor(kernels::Isa::kScalar), pool, {});
}

void AwaitFlag(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(LateRunner, IsReadyWhenItsNetworkIsMade) {
  const auto file =
      *formats::OpenCheckpoint(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 12}));
  ThreadPool pool(1);
  std::atomic<bool> go = false;
  LateRunner late(
      {.max_rows = 4, .vocabulary = 320},
      [&](LateRunner::Making& making) {
        making.total_bytes = 8, making.done_bytes = 3;
        AwaitFlag(go);
        return LateNetwork(*file, pool);
      },
      [](const std::string& why) { ADD_FAILURE() << why; });
  EXPECT_EQ(late.info().vocabulary, 320);
  EXPECT_FALSE(late.Ready());
  EXPECT_EQ(late.made(), nullptr);
  while (late.making().done_bytes != 3) std::this_thread::yield();
  EXPECT_EQ(late.making().total_bytes, 8u);
  EXPECT_EQ(late.why_none(), nullptr);
  go = true;
  while (!late.Ready()) std::this_thread::yield();
  ASSERT_NE(late.made(), nullptr);

  const auto own = *LateNetwork(*file, pool);
  const std::vector<Token> tokens = {5, 9, 3};
  const std::vector<std::int32_t> blocks = {0};
  const kv::Segment segment{.n_rows = 3, .blocks = blocks};
  const std::vector<int> rows = {2};
  const Pass pass = {.tokens = tokens, .segments = {&segment, 1}, .logit_rows = rows};
  const float* const expected = own->Run(pass).Logits(0);
  const float* const logits = late.Run(pass).Logits(0);
  EXPECT_EQ(std::vector<float>(logits, logits + 320), std::vector<float>(expected, expected + 320));
}

TEST(LateRunner, TellsOnceWhyThereIsNoNetwork) {
  std::vector<std::string> told;
  std::atomic<bool> left = false;
  LateRunner late(
      {},
      [&](LateRunner::Making&) -> Result<std::unique_ptr<LocalRunner>> {
        left = true;
        return Fail(ErrorCode::kIo, "the file was changed");
      },
      [&](const std::string& why) { told.push_back(why); });
  while (told.empty()) EXPECT_FALSE(late.Ready());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(late.Ready());
  EXPECT_TRUE(left);
  EXPECT_EQ(told, std::vector<std::string>{"the file was changed"});
  ASSERT_NE(late.why_none(), nullptr);
  EXPECT_EQ(*late.why_none(), "the file was changed");
}

// The third runner is there to show that the first one's thread had time to begin.
TEST(LateRunner, WaitsToBeAskedButNotForEver) {
  std::atomic<bool> unasked = false, asked = false, impatient = false;
  const auto sets = [](std::atomic<bool>& began) {
    return [&began](LateRunner::Making&) -> Result<std::unique_ptr<LocalRunner>> {
      began = true;
      return Fail(ErrorCode::kStopped, "stopped");
    };
  };
  const auto nothing = [](const std::string&) {};
  LateRunner first({}, sets(unasked), nothing, std::chrono::hours(1));
  LateRunner second({}, sets(asked), nothing, std::chrono::hours(1));
  EXPECT_FALSE(second.Ready());
  AwaitFlag(asked);
  const LateRunner third({}, sets(impatient), nothing, std::chrono::milliseconds(0));
  AwaitFlag(impatient);
  EXPECT_FALSE(unasked);
}

// Its end stops the making, of which nobody is told.
TEST(LateRunner, StopsTheMakingAtItsEnd) {
  std::atomic<bool> began = false, stopped = false;
  {
    LateRunner late(
        {},
        [&](LateRunner::Making& making) -> Result<std::unique_ptr<LocalRunner>> {
          began = true;
          AwaitFlag(making.stop);
          stopped = true;
          return Fail(ErrorCode::kStopped, "stopped");
        },
        [](const std::string& why) { ADD_FAILURE() << why; });
    EXPECT_FALSE(late.Ready());
    AwaitFlag(began);
  }
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace foretoken::model
