// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/copy_figures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::loader {
namespace {

namespace fs = std::filesystem;

class CopyFigures : public testing::Test {
 protected:
  std::string folder() const { return (root_ / "cache").string(); }
  std::string path() const { return folder() + "/copies.json"; }
  CopyFile File(std::uint64_t model, std::uint64_t machine = 1) const {
    return CopyFile(folder(), model, machine);
  }
  std::string Text() const { return WholeFile(path()); }

  const fs::path root_ = fixtures::TemporaryFolder();
};

const CopyFigure kTwoBits = {"Q2_K", 80, 96, 0.4}, kThreeBits = {"Q3_K", 90, 96, 0.5};

TEST_F(CopyFigures, AreThoseOfTheModel) {
  File(1).Write(kTwoBits);
  File(1).Write(kThreeBits);
  File(2).Write({"Q2_K", 7, 96, 0.3});
  EXPECT_EQ(File(1).Read(), (std::vector{kThreeBits, kTwoBits}));
  EXPECT_EQ(File(2).Read().size(), 1U);
  EXPECT_TRUE(File(3).Read().empty());
  File(1).Write({"Q2_K", 81, 96, 0.41});  // again
  EXPECT_EQ(File(1).Read().front().agreed, 81);
  EXPECT_EQ(File(1).Read().size(), 2U);
}

TEST_F(CopyFigures, OfAnotherMachineHaveNoCost) {
  File(1, 1).Write(kTwoBits);
  File(1, 2).Write({"Q2_K", 81, 96, 0.7});
  File(1, 2).Write(kThreeBits);
  EXPECT_EQ(File(1, 1).Read(), (std::vector<CopyFigure>{kTwoBits, {"Q3_K", 90, 96, 0}}));
  EXPECT_EQ(File(1, 3).Read().front().cost, 0);
  EXPECT_EQ(File(1, 2).PositionsOf("Q3_K"), 96);
  EXPECT_EQ(File(1, 1).PositionsOf("Q3_K"), 0);
}

TEST_F(CopyFigures, AreBounded) {
  for (std::size_t model = 0; model < CopyFile::kMostCopies + 3; ++model)
    File(model).Write(kTwoBits);
  EXPECT_TRUE(File(2).Read().empty());
  EXPECT_EQ(File(3).Read().size(), 1U);
}

TEST_F(CopyFigures, ThatAreWrongAreAsGoodAsNone) {
  File(1).Write(kTwoBits);
  const std::string good = Text();
  const auto write = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(path(), std::ios::trunc) << text.replace(at, from.size(), to);
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"agreed\":80", "\"agreed\":97"},
           {"\"agreed\":80", "\"agreed\":-1"},
           {"\"agreed\":80", "\"agreed\":1.5"},
           {"\"positions\":96", "\"positions\":0"},
           {"\"positions\":96", "\"positions\":18446744073709551615"},
           {"\"positions\":96", "\"places\":96"},
           {"0.4", "0"},
           {"0.4", "1e308"},
           {"0.4", "\"0.4\""},
           {"\"Q2_K\"", "\"" + std::string(97, 'Q') + "\""},
           {"\"Q2_K\"", "[]"},
           {"\"foretoken_copies\":1", "\"foretoken_copies\":2"},
           {"[{", "{"},
           {"{", ""}}) {
    write(from, to);
    EXPECT_TRUE(File(1).Read().empty()) << to;
  }
  std::ofstream(path(), std::ios::trunc) << good << std::string(1 << 16, ' ');  // too long
  EXPECT_TRUE(File(1).Read().empty());
  File(1).Write(kThreeBits);  // and it is replaced
  EXPECT_EQ(File(1).Read(), std::vector{kThreeBits});
}

TEST_F(CopyFigures, ThatOthersCanWriteAreNotRead) {
  File(1).Write(kTwoBits);
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  EXPECT_TRUE(File(1).Read().empty());
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  EXPECT_EQ(File(1).Read().size(), 1U);
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  EXPECT_TRUE(File(1).Read().empty());
}

TEST_F(CopyFigures, AreKeptWhereTilesAre) {
  EXPECT_FALSE(CopyFile().keeps());
  CopyFile().Write(kTwoBits);
  EngineOptions options;
  fs::create_directories(root_);
  options.model = (root_ / "model.gguf").string();
  std::ofstream(options.model) << "a model";
  options.repack_cache = "off";
  EXPECT_FALSE(CopyFileFor(options).keeps());
  options.repack_cache = folder();
  CopyFileFor(options).Write(kTwoBits);
  EXPECT_EQ(CopyFileFor(options).Read(), std::vector{kTwoBits});
  options.threads = 7;  // what a pass costs
  EXPECT_EQ(CopyFileFor(options).Read().front().cost, 0);
  std::ofstream(options.model) << "b model";
  EXPECT_TRUE(CopyFileFor(options).Read().empty());
}

}  // namespace
}  // namespace foretoken::loader
