// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kept_costs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::calibrate {
namespace {

namespace fs = std::filesystem;
using draft_length::LearnedCosts;

class KeptCosts : public testing::Test {
 protected:
  std::string folder() const { return (root_ / "cache" / "foretoken").string(); }
  std::string path() const { return folder() + "/costs.json"; }
  CostFile File(std::uint64_t key) const { return CostFile(folder(), key); }
  std::string Text() const { return WholeFile(path()); }

  const fs::path root_ = fixtures::TemporaryFolder();
};

KeptFigures Costs(double row_us) {
  return {.costs = {.passes = {{1, row_us}, {2, 1.25 * row_us}, {4, 1.5 * row_us}},
                    .drafts = {{.one_us = 10, .all_us = 0, .row_us = 3, .first = 2}},
                    .position = {.bytes = 0.5, .arithmetic = 0.25}},
          .verdicts = {{0, 0, 0, 40, 30}, {0, 0, 1, 25.125, 15}, {1, 3, 0, 2, 1}}};
}

std::vector<PassCost> Measured(std::vector<LearnedCosts::Pass> passes) {
  std::vector<PassCost> costs;
  for (const auto& pass : passes) costs.push_back({pass.rows, 0, {pass.us, pass.us, pass.us}});
  return costs;
}

TEST_F(KeptCosts, AreThoseOfTheSameKey) {
  File(1).Write(Costs(100));
  File(2).Write(Costs(200));
  const auto one = File(1).Read(), two = File(2).Read();
  ASSERT_TRUE(one && two);
  ASSERT_EQ(one->costs.passes.size(), 3U);
  EXPECT_EQ(one->costs.passes[2].rows, 4);
  EXPECT_DOUBLE_EQ(one->costs.passes[2].us, 150);
  EXPECT_DOUBLE_EQ(two->costs.passes[2].us, 300);
  ASSERT_EQ(one->costs.drafts.size(), 1U);
  EXPECT_DOUBLE_EQ(one->costs.drafts[0].one_us, 10);
  EXPECT_DOUBLE_EQ(one->costs.drafts[0].row_us, 3);
  EXPECT_DOUBLE_EQ(one->costs.drafts[0].first, 2);
  EXPECT_DOUBLE_EQ(one->costs.position.bytes, 0.5);
  EXPECT_DOUBLE_EQ(one->costs.position.arithmetic, 0.25);
  EXPECT_FALSE(File(3).Read());
  EXPECT_FALSE(CostFile().Read());
}

TEST_F(KeptCosts, TheFolderIsForThisUserOnly) {
  File(1).Write(Costs(100));
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
}

// A umask that lets the group write must not make a file that the next engine does not trust.
TEST_F(KeptCosts, AreForThisUserWhateverTheUmask) {
  const mode_t before = umask(0002);
  File(1).Write(Costs(100));
  umask(before);
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(File(1).Read());
}

// Others could have written it.
TEST_F(KeptCosts, AFolderThatOthersMayWriteToIsNotRead) {
  File(1).Write(Costs(100));
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  EXPECT_FALSE(File(1).Read());
  File(2).Write(Costs(100));
  ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
  EXPECT_FALSE(File(2).Read());
}

TEST_F(KeptCosts, AreWrittenOnlyWhereTheySaySomethingNew) {
  for (int engine = 0; engine < 2; ++engine) File(1).Write(Costs(100));
  const std::string before = Text();
  KeptFigures slower = Costs(220);  // a slower moment
  slower.costs.drafts[0].one_us *= 2.2;
  File(1).Write(slower);
  EXPECT_EQ(Text(), before);
  slower.costs.passes[1].us *= 1.2;
  File(1).Write(slower);
  EXPECT_NE(Text(), before);
  EXPECT_DOUBLE_EQ(File(1).Read()->costs.passes[1].us, 1.2 * 1.25 * 220);
}

TEST_F(KeptCosts, CountTheEnginesInARowThatAgree) {
  const auto agreed = [this](const KeptFigures& figures) {
    File(1).Write(figures);
    return File(1).Read()->agreed;
  };
  EXPECT_EQ(agreed(Costs(100)), 0);
  KeptFigures slower = Costs(300);
  slower.costs.drafts[0].one_us *= 3;
  EXPECT_EQ(agreed(slower), 1);
  KeptFigures figures = slower;  // with rows that the others have not read
  figures.costs.passes.push_back({8, 900});
  figures.costs.position.bytes *= 2;  // short texts do not show it
  EXPECT_EQ(agreed(figures), 2);
  figures.costs.passes[1].us *= 1.15;
  EXPECT_EQ(agreed(figures), 3);
  figures.costs.passes[1].us *= 1.25;
  EXPECT_EQ(agreed(figures), 0);
  EXPECT_EQ(agreed(figures), 1);
  figures.costs.drafts[0].one_us *= 1.25;
  EXPECT_EQ(agreed(figures), 0);
  File(2).Write(figures);
  EXPECT_EQ(File(2).Read()->agreed, 0);
}

// Engines that measured nothing move a little each, and all the same way.
TEST_F(KeptCosts, DoNotWanderWhereEnginesMeasureNothing) {
  for (int engine = 0; engine < 2; ++engine) File(1).Write(Costs(100));
  const std::vector<draft_length::LearnedCosts::Pass> measured = File(1).Read()->costs.passes;
  KeptFigures moved;
  for (int engine = 0; engine < 20; ++engine) {
    moved = *File(1).Read();
    moved.costs.of_another = true;
    moved.costs.passes[1].us *= 1.1;
    moved.verdicts = {{0, 0, 0, 10, 0.5 * engine}};
    File(1).Write(moved);
    EXPECT_GT(File(1).Read()->agreed, 0);
    EXPECT_EQ(File(1).Read()->verdicts.size(), 1u);
    EXPECT_DOUBLE_EQ(File(1).Read()->costs.passes[1].us, measured[1].us);
  }
  moved.costs.passes[1].us *= 1.2;  // it is another machine
  File(1).Write(moved);
  EXPECT_EQ(File(1).Read()->agreed, 0);
  EXPECT_DOUBLE_EQ(File(1).Read()->costs.passes[1].us, 1.1 * 1.2 * measured[1].us);
}

TEST_F(KeptCosts, TellHowOftenDraftsWereAccepted) {
  for (int engine = 0; engine < 2; ++engine) File(1).Write(Costs(100));
  const auto kept = File(1).Read();
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->verdicts.size(), 3U);
  EXPECT_EQ(kept->verdicts[1].position, 1);
  EXPECT_DOUBLE_EQ(kept->verdicts[1].verified, 25.13);
  EXPECT_DOUBLE_EQ(kept->verdicts[1].accepted, 15);
  EXPECT_EQ(kept->verdicts[2].drafter, 1);
  EXPECT_EQ(kept->verdicts[2].evidence, 3);
  const std::string before = Text();
  KeptFigures figures = Costs(100);
  figures.verdicts[0] = {0, 0, 0, 50, 39};  // 0.78 of 0.75
  figures.verdicts[2].accepted = 0;         // of two
  File(1).Write(figures);
  EXPECT_EQ(Text(), before);
  figures.verdicts[0].accepted = 20;
  File(1).Write(figures);
  EXPECT_NE(Text(), before);
}

TEST_F(KeptCosts, TheEnginesThatEndedFirstGo) {
  for (std::uint64_t key = 0; key <= CostFile::kMostEngines; ++key) File(key).Write(Costs(100));
  EXPECT_FALSE(File(0).Read());
  EXPECT_TRUE(File(1).Read());
  EXPECT_TRUE(File(CostFile::kMostEngines).Read());
}

TEST_F(KeptCosts, AFileThatCannotBeReadIsAsGoodAsNone) {
  File(1).Write(Costs(100));
  const std::string whole = Text();
  const auto replaced = [&whole](const std::string& from, const std::string& to) {
    std::string text = whole;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> broken = {
      "",
      "{",
      "[]",
      "null",
      std::string(2 << 20, ' ') + whole,
      replaced("\"foretoken_costs\":1", "\"foretoken_costs\":2"),
      replaced("\"foretoken_costs\":1", "\"foretoken_costs\":\"1\""),
      replaced("[1,100.0]", "[0,100.0]"),
      replaced("[1,100.0]", "[1,0.0]"),
      replaced("[1,100.0]", "[1,-5.0]"),
      replaced("[1,100.0]", "[1e30,100.0]"),
      replaced("[1,100.0]", "[1,1e300]"),
      replaced("[1,100.0]", "[1]"),
      replaced("[1,100.0]", "\"row\""),
      replaced("[10.0,0.0,3.0,2.0]", "[10.0,0.0,3.0,0.0]"),
      replaced("[10.0,0.0,3.0,2.0]", "[10.0,0.0,3.0,1e9]"),
      replaced("[10.0,0.0,3.0,2.0]", "{}"),
      replaced("[0,0,0,40.0,30.0]", "[-1,0,0,40.0,30.0]"),
      replaced("[0,0,0,40.0,30.0]", "[0,4,0,40.0,30.0]"),
      replaced("[0,0,0,40.0,30.0]", "[0,0,64,40.0,30.0]"),
      replaced("[0,0,0,40.0,30.0]", "[0,0,0,0.0,30.0]"),
      replaced("[0,0,0,40.0,30.0]", "[0,0,0,40.0,-1.0]"),
      replaced("\"bytes_us\":0.5", "\"bytes_us\":-0.5"),
      replaced("\"bytes_us\":0.5,", ""),
      replaced("\"agreed\":0", "\"agreed\":-1"),
      replaced("\"agreed\":0", "\"agreed\":true"),
      replaced("\"passes\":[", "\"passes\":7,\"other\":["),
  };
  for (const std::string& text : broken) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
    EXPECT_FALSE(File(1).Read()) << text.substr(0, 200);
    File(1).Write(Costs(100));
    EXPECT_EQ(Text(), whole);
  }
}

TEST(SlowerThan, IsTheMedianOfTheRowsOfBoth) {
  const LearnedCosts kept = Costs(100).costs;  // 100, 125 and 150 us
  EXPECT_DOUBLE_EQ(SlowerThan(kept, Measured({{1, 100}, {2, 125}, {4, 150}})), 1);
  EXPECT_DOUBLE_EQ(SlowerThan(kept, Measured({{1, 210}, {2, 250}, {4, 3000}})), 2.1);
  EXPECT_DOUBLE_EQ(SlowerThan(kept, Measured({{2, 250}, {4, 330}})), 2);
  EXPECT_EQ(SlowerThan(kept, Measured({{1, 100}, {3, 125}})), 0);
  EXPECT_EQ(SlowerThan(LearnedCosts(), Measured({{1, 100}, {2, 125}})), 0);
}

// Passes of two and four rows were read in bad moments before they were kept. They must not make one
// row look cheaper than it is now, because drafts would look dear then, at every start.
TEST(SlowerThan, IsNotLessThanThatOfOneRow) {
  const LearnedCosts kept = {.passes = {{1, 100}, {2, 180}, {4, 260}}, .drafts = {}};
  const std::vector<PassCost> measured = Measured({{1, 100}, {2, 120}, {4, 150}});
  const double slower = SlowerThan(kept, measured);
  EXPECT_DOUBLE_EQ(slower, 1);  // the median of the three is 0.67
  EXPECT_DOUBLE_EQ(Believed(measured[0].us.median, 100, slower), 100);
}

TEST(Believed, IsAtMostALittleMoreThanWhatWasKept) {
  EXPECT_DOUBLE_EQ(Believed(100, 100, 2), 100);
  EXPECT_DOUBLE_EQ(Believed(900, 100, 2), 210);
  EXPECT_DOUBLE_EQ(Believed(0, 100, 2), 210);    // not measured
  EXPECT_DOUBLE_EQ(Believed(900, 0, 2), 900);    // not kept
  EXPECT_DOUBLE_EQ(Believed(900, 100, 0), 900);  // no common speed
}

}  // namespace
}  // namespace foretoken::calibrate
