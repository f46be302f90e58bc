// SPDX-License-Identifier: Apache-2.0
// What an engine says when a rank that computes with it is lost.
#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "comm/ranks.h"
#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "loader/ranks/rank_group.h"

namespace foretoken {
namespace {

constexpr const char* kWhyLost = "ranks: rank 1 on there is gone";

// One rank, which loses another one when a test says so.
class LosingRanks final : public comm::Alone {
 public:
  // A sign of life is missing; no call has failed yet.
  void Notice() { SetLost(kWhyLost); }
  // A call of a pass has failed.
  void Fail() { Notice(), why_ = kWhyLost; }
};

class RankLoss : public testing::Test {
 protected:
  RankLoss() {
    auto ranks = std::make_unique<LosingRanks>();
    ranks_ = ranks.get();
    EngineOptions options;
    options.model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {});
    options.speculative.method = "none";
    options.threads = 1;
    options.ranks =
        std::make_shared<RankGroup>(std::make_unique<RankGroup::Impl>(std::move(ranks), 1));
    engine_ = OpenEngine(options);
  }
  static Request Ask() {
    Request request;
    request.prompt_tokens = {5, 6, 7};
    request.max_new_tokens = 20;
    request.ignore_eos = true;
    return request;
  }
  static void ExpectLost(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kRankLost);
    EXPECT_EQ(status.error().message, kWhyLost);
  }

  LosingRanks* ranks_;
  std::unique_ptr<Engine> engine_;
};

// Nothing runs, so no pass can fail.
TEST_F(RankLoss, IsToldBeforeAPassFails) {
  EXPECT_TRUE(engine_->FileStatus());
  ranks_->Notice();
  ExpectLost(engine_->FileStatus());
  const auto ticket = engine_->Begin(Ask());
  ASSERT_FALSE(ticket);
  EXPECT_EQ(ticket.error().code, ErrorCode::kRankLost);
}

TEST_F(RankLoss, EndsTheRequestsOfThePassThatFailed) {
  const Ticket ticket = Got(engine_->Begin(Ask()));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(engine_->Step());
  ranks_->Fail();
  while (engine_->Step()) {
  }
  const Completion ended = engine_->Take(ticket).value();
  ASSERT_TRUE(ended.error.has_value());
  EXPECT_EQ(ended.error->code, ErrorCode::kRankLost);
  EXPECT_EQ(ended.error->message, kWhyLost);
  EXPECT_EQ(ended.token_ids.size(), 3U);  // nothing of that pass
}

}  // namespace
}  // namespace foretoken
