// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <array>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::formats {
namespace {

constexpr std::uint32_t kWrittenF32 = 0;
constexpr std::array<std::int64_t, 1> kFour = {4};

std::vector<std::byte> FileBytes(const std::string& path) {
  const std::string text = WholeFile(path);
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::size_t WrittenFiles(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(GgufWriter, CopiesKeysByteForByte) {
  GgufWriter source;
  source.SetAs("u8", GgufType::kUint8, std::int64_t{1});
  source.SetAs("i64s", GgufType::kInt64, std::vector<std::int64_t>{-1, 2});
  source.SetAs("f64", GgufType::kFloat64, 0.1);
  source.Set("texts", std::vector<std::string>{"", "a", "bc"});
  source.Set("general.alignment", std::int64_t{32});
  source.SetAs("flags", GgufType::kBool, std::vector<std::int64_t>{0, 1, 1});
  const auto bytes = source.Bytes().value();
  GgufWriter copy, expected;
  copy.CopyKeys(bytes);
  copy.Remove("texts");
  copy.Remove("nothing");
  copy.Set("f64", std::string("now a text"));
  expected.SetAs("u8", GgufType::kUint8, std::int64_t{1});
  expected.SetAs("i64s", GgufType::kInt64, std::vector<std::int64_t>{-1, 2});
  expected.Set("f64", std::string("now a text"));
  expected.SetAs("flags", GgufType::kBool, std::vector<std::int64_t>{0, 1, 1});
  EXPECT_EQ(copy.Bytes().value(), expected.Bytes().value());
}

TEST(GgufWriter, RefusesToCopyKeysOfWhatIsNoHeader) {
  GgufWriter source;
  source.Set("texts", std::vector<std::string>{"one", "two"});
  const auto bytes = source.Bytes().value();
  const std::size_t header = 4 + 4 + 8 + 8 + (8 + 5) + 4 + (4 + 8) + 2 * (8 + 3);
  for (std::size_t n = 0; n < header; ++n) {
    GgufWriter copy;
    copy.CopyKeys(std::span(bytes).first(n));
    EXPECT_FALSE(copy.Bytes().has_value()) << n << " bytes";
  }
  GgufWriter whole;
  whole.CopyKeys(std::span(bytes).first(header));
  EXPECT_TRUE(whole.Bytes().has_value());
}

TEST(GgufWriter, TakesBytesThatComeInPieces) {
  const std::vector<float> values = {1, 2, 3, 4};
  const auto bytes = std::as_bytes(std::span(values));
  GgufWriter whole, pieces;
  whole.AddTensor("t", kWrittenF32, kFour, bytes);
  pieces.AddTensor("t", kWrittenF32, kFour, [&](const ByteSink& sink) -> Status {
    FORETOKEN_CHECK_OK(sink(bytes.first(1)));
    FORETOKEN_CHECK_OK(sink({}));
    return sink(bytes.subspan(1));
  });
  EXPECT_EQ(pieces.Bytes().value(), whole.Bytes().value());
  EXPECT_EQ(pieces.Bytes().value(), whole.Bytes().value());  // again
}

TEST(GgufWriter, AFailedWriteLeavesTheFileThatWasThere) {
  const std::string folder = fixtures::TemporaryFolder(), path = folder + "/x.gguf";
  GgufWriter good, bad;
  good.Set("a", std::int64_t{1});
  ASSERT_TRUE(good.Write(path).has_value());
  bad.AddTensor("t", kWrittenF32, kFour, [&](const ByteSink& sink) -> Status {
    FORETOKEN_CHECK_OK(sink(std::vector<std::byte>(4)));
    return Fail(ErrorCode::kIo, "no more");
  });
  EXPECT_EQ(bad.Write(path).error().message, "no more");
  EXPECT_EQ(WrittenFiles(folder), 1u);
  EXPECT_EQ(FileBytes(path), good.Bytes().value());
}

TEST(GgufWriter, ReplacesAFileByACompleteOne) {
  const std::string folder = fixtures::TemporaryFolder(), path = folder + "/x.gguf";
  for (std::int64_t i = 0; i < 2; ++i) {
    GgufWriter writer;
    writer.Set("a", i);
    ASSERT_TRUE(writer.Write(path).has_value());
    EXPECT_EQ(FileBytes(path), writer.Bytes().value());
    EXPECT_EQ(WrittenFiles(folder), 1u);
  }
}

}  // namespace
}  // namespace foretoken::formats
