// SPDX-License-Identifier: Apache-2.0
#include "calibrate/initial_costs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fixtures/tiny_model.h"
#include "foretoken/tools/profile.h"
#include "loader/drafts/fake_drafter_testing.h"

namespace foretoken::calibrate {
namespace {

namespace fs = std::filesystem;

// A target without a file, one model that drafts and one lookup. Time passes by what the fakes say.
class InitialCosts : public testing::Test {
 protected:
  InitialCosts() {
    options_.model = Write("target.gguf", std::string(1000, 't'));
    options_.threads = 1;
    options_.speculative.controller = "cost-model";
    Add("model", Write("draft.gguf", std::string(100, 'd')), false);
    Add("lookup", "", true);
    EXPECT_TRUE(drafters_.SetDefaults("model"));
    runner_.spends_time = [this](int) { now_us_ += 1000; };
    drafter_->spends_time = [this](int drafts) { now_us_ += 200 * drafts; };
  }
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  void Add(const std::string& method, const std::string& file, bool instant) {
    auto drafter = std::make_unique<loader::FakeDrafter>(runner_, 50);
    if (!instant) drafter_ = drafter.get();
    drafters_.Add({.method = method,
                   .name = method,
                   .full_name = method,
                   .file = file,
                   .file_bytes = file.empty() ? 0 : 100,
                   .drafter = std::move(drafter),
                   .instant = instant});
  }

  // A profile of these files on this machine, with costs that no measurement gives.
  Profile Fitting() const {
    Profile profile;
    profile.machine = ProfileMachine::This(kernels_.isa, options_.threads);
    profile.target = *ProfileModel::Of(options_.model);
    profile.passes = {{0, 1, 4e6}, {0, 2, 5e6}};
    profile.drafts = {{"model", *ProfileModel::Of(drafters_[0].file), 3e6}};
    profile.rest_us = 77;
    return profile;
  }
  void Use(const Profile& profile) {
    options_.speculative.profile = (folder_ / "profile.json").string();
    ASSERT_TRUE(profile.Save(options_.speculative.profile));
  }

  Result<std::vector<PassCost>> Learn(bool records = false) {
    const CostSources sources{.subject = {.pool = pool_,
                                          .kernels = kernels_,
                                          .target = runner_,
                                          .cache = cache_,
                                          .vocabulary = 50,
                                          .context = 256,
                                          .most_positions = 256,
                                          .drafts = 4,
                                          .now = [this] { return now_us_; }},
                              .options = options_,
                              .target_bytes = 1000,
                              .drafters = drafters_,
                              .records = records,
                              .kept = kept_,
                              .kept_agree = kept_agree_};
    return LearnInitialCosts(sources, {costs_, fixed_costs_, notices_});
  }

  // The rows of the pass that runs now. Each pass must ask for them.
  double RowsOfPass() {
    return static_cast<double>(runner_.n_rows() - std::exchange(rows_before_, runner_.n_rows()));
  }

  std::int64_t rows_before_ = 0;
  double now_us_ = 0;
  const fs::path folder_ = fixtures::TemporaryFolder();
  EngineOptions options_;
  ThreadPool pool_{1};
  const kernels::Kernels& kernels_ = kernels::KernelsFor(kernels::Isa::kScalar);
  model::FakeRunner runner_;
  kv::BlockTables cache_{{.n_sequences = 1, .max_positions = 256, .n_positions = 512}};
  loader::DrafterSet drafters_;
  loader::FakeDrafter* drafter_ = nullptr;  // the model's
  draft_length::RoundCosts costs_{64, 2}, fixed_costs_{64, 2};
  std::vector<std::string> notices_;
  draft_length::LearnedCosts kept_;
  bool kept_agree_ = false;
};

TEST_F(InitialCosts, FixedCostsFollowFromTheSizesOfTheFiles) {
  ASSERT_TRUE(Learn());
  EXPECT_TRUE(fixed_costs_.known());
  EXPECT_DOUBLE_EQ(fixed_costs_.PassUs(1, 0), 1000);
  // A draft has a part that is alike for all, and a share of the target's bytes.
  EXPECT_DOUBLE_EQ(fixed_costs_.DraftUs(0, 1), 1000 * (0.05 + 0.1));
  EXPECT_EQ(fixed_costs_.DraftUs(1, 1), 0);  // a lookup is free
}

// As a copy of the target that is made while the engine works: it costs its share of a pass, by bytes.
TEST_F(InitialCosts, ALateCopyCostsItsShareOfAPass) {
  drafters_[0].late = true;
  drafters_[0].pass_share = 0.31;
  ASSERT_TRUE(Learn());
  EXPECT_EQ(drafter_->n_begun, 0);  // nobody asks for it yet
  EXPECT_DOUBLE_EQ(fixed_costs_.DraftUs(0, 1), 1000 * (0.05 + 0.31));
  EXPECT_DOUBLE_EQ(costs_.DraftUs(0, 1), 310);
}

TEST_F(InitialCosts, TheCostModelMeasuresPassesAndDrafts) {
  const auto measured = Learn();
  ASSERT_TRUE(measured);
  ASSERT_FALSE(measured->empty());
  EXPECT_EQ(measured->front().rows, 1);
  EXPECT_TRUE(costs_.known());
  EXPECT_DOUBLE_EQ(costs_.PassUs(1, 0), 1000);
  EXPECT_NEAR(costs_.DraftUs(0, 1), 200, 1e-6);
  EXPECT_EQ(costs_.DraftUs(1, 1), 0);
  EXPECT_EQ(cache_.n_free_blocks(), cache_.n_blocks());  // nothing is left behind
}

// As if the weights came from the disk: a first pass that is longer than all that may be spent.
TEST_F(InitialCosts, ASlowFirstPassIsNoMeasurement) {
  runner_.spends_time = [this](int n_passes) { now_us_ += n_passes == 1 ? 400'000 : 2'000; };
  const auto measured = Learn();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->size(), 4U);  // 1, 2, 3 and 5 rows
  EXPECT_DOUBLE_EQ(costs_.PassUs(1, 0), 2000);
}

// Another program had the core the first eight times that three rows were measured.
TEST_F(InitialCosts, AReadingThatItsNeighboursContradictIsTakenAgain) {
  int disturbed = 16;  // passes: each reading warms the caches first
  runner_.spends_time = [&](int) {
    const double rows = RowsOfPass();
    now_us_ += rows == 3 && disturbed-- > 0 ? 9000 : 1000 + 50 * rows;
  };
  ASSERT_TRUE(Learn());
  EXPECT_LT(disturbed, 0);
  EXPECT_DOUBLE_EQ(costs_.PassUs(3, 0), 1150);
  EXPECT_DOUBLE_EQ(costs_.PassUs(5, 0), 1250);
}

// The core was faster the first eight times that three rows were measured, and slow again beside them.
TEST_F(InitialCosts, AReadingThatIsTooShortIsTakenAgain) {
  int disturbed = 16;  // passes: each reading warms the caches first
  runner_.spends_time = [&](int) {
    const double rows = RowsOfPass();
    now_us_ += rows == 3 && disturbed-- > 0 ? 700 : 1000 + 250 * rows;
  };
  ASSERT_TRUE(Learn());
  EXPECT_LT(disturbed, 0);
  EXPECT_DOUBLE_EQ(costs_.PassUs(2, 0), 1500);
  EXPECT_DOUBLE_EQ(costs_.PassUs(3, 0), 1750);
}

// The caches are shared with other programs: after many rows, the next few passes of one row bring the
// weights back.
TEST_F(InitialCosts, OneRowIsMeasuredAsInARunOfSuchPasses) {
  double displaced = 0;
  runner_.spends_time = [&](int) {
    const double rows = RowsOfPass();
    displaced = rows > 1 ? std::max(displaced, 0.1 * rows) : displaced / 2;
    now_us_ += 200 + 100 * rows + (rows == 1 ? 300 * displaced : 0);
  };
  ASSERT_TRUE(Learn());
  const double one_us = costs_.PassUs(1, 0);
  EXPECT_NEAR(one_us, 300, 15);
  for (const int rows : {2, 3, 5})
    EXPECT_NEAR(costs_.PassUs(rows, 0) / one_us, (200 + 100 * rows) / 300.0, 0.05 * rows);
}

// The core's clock is twice as fast now and then, for less time than one turn of readings takes. So the quickest readings of some
// passes are of one speed, and those of others of another.
TEST_F(InitialCosts, OnAMachineWhoseSpeedChangesCostsKeepTheirRatios) {
  std::uint64_t state = 11;
  double pace = 1, until_us = 0;
  const auto spend = [&](double us) {
    for (; now_us_ >= until_us; until_us += 2'500 + static_cast<double>(state >> 40) / 4'000) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      pace = state >> 61 == 0 ? 1 : 2.2;
    }
    now_us_ += us * pace;
  };
  runner_.spends_time = [&](int) { spend(200 + 160 * RowsOfPass()); };
  drafter_->spends_time = [&](int drafts) { spend(100 * drafts); };
  for (int start = 0; start < 20; ++start) {
    ASSERT_TRUE(Learn());
    const double one_us = costs_.PassUs(1, 0);
    for (const int rows : {2, 3, 5})
      EXPECT_NEAR(costs_.PassUs(rows, 0) / one_us, (200 + 160 * rows) / 360.0, 0.05 * rows)
          << start;
    EXPECT_NEAR(costs_.DraftUs(0, 1) / one_us, 100 / 360.0, 0.02) << start;
  }
}

// Another program had the core for the first 20 ms of the drafter's rounds, and for longer in each of
// them than the round takes.
TEST_F(InitialCosts, ADrafterThatIsDisturbedIsMeasuredUntilTwoReadingsAgree) {
  double disturbed_us = 20'000;
  drafter_->spends_time = [&](int drafts) {
    const double us = 200 * drafts, lost = disturbed_us > 0 ? 2000 + disturbed_us / 5 : 0;
    disturbed_us -= us + lost;
    now_us_ += us + lost;
  };
  ASSERT_TRUE(Learn());
  EXPECT_NEAR(costs_.DraftUs(0, 1), 200, 1e-6);
}

// The first pass of a model waits for its file. A prompt seemed to cost fifteen times what it does, so behind
// long prompts models never drafted.
TEST_F(InitialCosts, WhatADrafterReadsIsMeasuredWhenItReadsAgain) {
  drafter_->tells_work = [this, read = 0]() mutable -> draft::Drafter::Work {
    if (std::exchange(read, drafter_->n_begun) == drafter_->n_begun) return {};
    return {.catch_up_ms = read == 1 ? 72.0 : 4.8, .catch_up_rows = 24};
  };
  ASSERT_TRUE(Learn());
  EXPECT_DOUBLE_EQ(costs_.CatchUpUs(0, 100), 20'000);
  EXPECT_EQ(drafter_->n_ended, drafter_->n_begun);
}

// Three rows and all drafts are disturbed for as long as anything is measured, and the machine is half
// as fast as when the costs were kept.
TEST_F(InitialCosts, WhatWasKeptBoundsWhatIsMeasured) {
  runner_.spends_time = [&](int) {
    const double rows = RowsOfPass();
    now_us_ += rows == 3 ? 1240 : 1000 + 50 * rows;  // no neighbour contradicts it
  };
  drafter_->spends_time = [this](int drafts) { now_us_ += 900 * drafts; };
  kept_ = {.passes = {{1, 525}, {2, 550}, {3, 575}, {5, 625}},
           .drafts = {{.one_us = 100, .row_us = 1}, {}}};
  ASSERT_TRUE(Learn());
  EXPECT_DOUBLE_EQ(costs_.PassUs(1, 0), 1050);
  EXPECT_DOUBLE_EQ(costs_.PassUs(3, 0), 1.05 * 2 * 575);
  EXPECT_DOUBLE_EQ(costs_.PassUs(5, 0), 1250);
  EXPECT_NEAR(costs_.DraftUs(0, 1), 1.05 * 2 * 100, 1e-6);
}

// All costs of an engine that drafts up to four tokens in a round.
draft_length::LearnedCosts AllThatIsKept() {
  return {.passes = {{1, 500}, {2, 550}, {3, 600}, {5, 700}},
          .drafts = {{.one_us = 100, .row_us = 1, .first = 2}, {}},
          .position = {.bytes = 0.1, .arithmetic = 0.2}};
}

// The first token waits for nothing but its prompt.
TEST_F(InitialCosts, WhatTwoEnginesLearnedAlikeIsNotMeasuredAgain) {
  kept_ = AllThatIsKept();
  kept_agree_ = true;
  const auto measured = Learn();
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->empty());
  EXPECT_EQ(runner_.n_passes(), 0);
  EXPECT_EQ(drafter_->n_begun, 0);
  EXPECT_DOUBLE_EQ(costs_.PassUs(1, 0), 500);
  EXPECT_DOUBLE_EQ(costs_.PassUs(4, 0), 650);
  EXPECT_DOUBLE_EQ(costs_.PassUs(5, 1000), 700 + 1000 * (0.1 + 5 * 0.2));
  EXPECT_DOUBLE_EQ(costs_.DraftsUs(0, 3, 3), 400);
  EXPECT_DOUBLE_EQ(costs_.CatchUpUs(0, 7), 7);
  EXPECT_DOUBLE_EQ(fixed_costs_.PassUs(1, 0), 1000);  // by the sizes of the files, as ever
  for (int pass = 0; pass < 3; ++pass)
    costs_.RecordPass(1, 0, 2000);  // the machine is slower today
  EXPECT_DOUBLE_EQ(costs_.PassUs(4, 0), 2600);
  EXPECT_DOUBLE_EQ(costs_.DraftsUs(0, 3, 3), 1600);
}

TEST_F(InitialCosts, WhatIsNotAllThatAnEngineNeedsIsMeasured) {
  const auto measures = [this](const draft_length::LearnedCosts& kept, bool agree) {
    kept_ = kept, kept_agree_ = agree;
    const auto measured = Learn();
    return measured && !measured->empty();
  };
  EXPECT_FALSE(measures(AllThatIsKept(), true));
  EXPECT_TRUE(measures(AllThatIsKept(), false));  // one engine says so
  auto kept = AllThatIsKept();
  kept.passes[3].rows = 4;  // the widest pass is not known
  EXPECT_TRUE(measures(kept, true));
  kept = AllThatIsKept();
  kept.passes.erase(kept.passes.begin());
  EXPECT_TRUE(measures(kept, true));
  kept = AllThatIsKept();
  kept.passes[1].rows = 3;  // twice
  EXPECT_TRUE(measures(kept, true));
  kept = AllThatIsKept();
  kept.drafts[0].one_us = 0;
  EXPECT_TRUE(measures(kept, true));
  kept.drafts.clear();
  EXPECT_TRUE(measures(kept, true));
  kept_ = AllThatIsKept(), kept_agree_ = true;
  EXPECT_FALSE(Learn(true)->empty());  // a trace wants measurements
}

TEST_F(InitialCosts, CostsAreKeptByTheModelsAndTheProcessor) {
  options_.repack_cache = (folder_ / "cache").string();
  const auto written = [this](const std::string& isa) {
    const CostFile file = CostFileFor(options_, isa, drafters_);
    const bool known = file.Read().has_value();
    file.Write({.costs = {.passes = {{1, 100}, {2, 200}}, .drafts = {}}, .verdicts = {}});
    return !known && file.Read().has_value();
  };
  EXPECT_TRUE(written("scalar"));
  EXPECT_FALSE(written("scalar"));  // it is there already
  EXPECT_TRUE(written("avx2"));
  options_.threads = 2;
  EXPECT_TRUE(written("avx2"));
  options_.speculative.draft_window = 1024;
  EXPECT_TRUE(written("avx2"));
  options_.speculative.synthetic_acceptance_rate = 0.8;
  EXPECT_TRUE(written("avx2"));
  options_.speculative.strategy = VerifyStrategy::kTypicalAcceptance;
  EXPECT_TRUE(written("avx2"));
  Write("draft.gguf", std::string(100, 'e'));
  EXPECT_TRUE(written("avx2"));
  Write("target.gguf", std::string(1001, 't'));
  EXPECT_TRUE(written("avx2"));
  options_.repack_cache = "off";
  EXPECT_FALSE(CostFileFor(options_, "avx2", drafters_).keeps());
}

// Where six passes take longer than the usual limit, more than one row is measured all the same.
TEST_F(InitialCosts, SlowModelsAreMeasuredByTheirOwnPasses) {
  runner_.spends_time = [this](int) { now_us_ += 180'000; };
  const auto measured = Learn();
  ASSERT_TRUE(measured);
  EXPECT_GE(measured->size(), 2U);
  EXPECT_LE(now_us_, 2 * 180'000 * (2 + 6 + 1));  // six passes are the limit, each warmed up
}

// A round of this drafter takes 6 ms and 3 more for each draft.
TEST_F(InitialCosts, TheFirstDraftOfARoundIsMeasuredByItself) {
  drafter_->spends_time = [this](int drafts) { now_us_ += 6000 + 3000 * drafts; };
  ASSERT_TRUE(Learn());
  EXPECT_NEAR(costs_.DraftUs(0, 1), 9000, 1e-6);
  EXPECT_NEAR(costs_.DraftUs(0, 1, 1), 3000, 1e-6);
  EXPECT_NEAR(costs_.DraftsUs(0, 4, 4), 18'000, 1e-6);
}

TEST_F(InitialCosts, OtherControllersMeasureNothing) {
  options_.speculative.controller = "fixed";
  const auto measured = Learn();
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->empty());
  EXPECT_FALSE(costs_.known());
  EXPECT_EQ(runner_.n_passes(), 0);
}

TEST_F(InitialCosts, WithoutADrafterNothingIsMeasured) {
  ASSERT_TRUE(drafters_.SetDefaults("none"));
  ASSERT_TRUE(Learn());
  EXPECT_EQ(runner_.n_passes(), 0);
}

TEST_F(InitialCosts, ATraceMeasuresInAnyCase) {
  options_.speculative.controller = "fixed";
  const auto measured = Learn(true);
  ASSERT_TRUE(measured);
  const auto widest = std::max_element(measured->begin(), measured->end(),
                                       [](auto& a, auto& b) { return a.rows < b.rows; });
  EXPECT_EQ(widest->rows, 9);  // a trace compares up to 8 drafts, whatever this engine uses
}

TEST_F(InitialCosts, AProfileReplacesMeasurements) {
  Use(Fitting());
  ASSERT_TRUE(Learn());
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(runner_.n_passes(), 0);
  for (const auto* known : {&costs_, &fixed_costs_}) {
    EXPECT_DOUBLE_EQ(known->PassUs(1, 0), 4e6);
    EXPECT_DOUBLE_EQ(known->DraftUs(0, 1), 3e6);
    EXPECT_DOUBLE_EQ(known->RestUs(), 77);
  }
}

TEST_F(InitialCosts, ADrafterThatTheProfileDoesNotHaveIsMeasured) {
  Profile profile = Fitting();
  profile.drafts.clear();
  Use(profile);
  ASSERT_TRUE(Learn());
  EXPECT_NEAR(costs_.DraftUs(0, 1), 200, 1e-6);
  EXPECT_DOUBLE_EQ(fixed_costs_.DraftUs(0, 1), 150);  // as the sizes of the files say
}

TEST_F(InitialCosts, AProfileOfAnotherMachineIsANotice) {
  Profile profile = Fitting();
  profile.machine.threads = 99;
  Use(profile);
  ASSERT_TRUE(Learn());
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_TRUE(notices_[0].starts_with("profile " + options_.speculative.profile + " is not used: "))
      << notices_[0];
  EXPECT_GT(runner_.n_passes(), 0);  // so the costs are measured
  EXPECT_DOUBLE_EQ(costs_.PassUs(1, 0), 1000);
}

TEST_F(InitialCosts, AProfileThatCannotBeReadIsAnError) {
  options_.speculative.profile = (folder_ / "missing.json").string();
  EXPECT_FALSE(Learn());
  options_.speculative.profile = Write("broken.json", "{");
  EXPECT_EQ(Learn().error().code, ErrorCode::kInvalidFile);
}

}  // namespace
}  // namespace foretoken::calibrate
