// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <limits>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"

namespace foretoken::formats {
namespace {

using fixtures::TemporaryFolder;
using fixtures::TinyModelOptions;
using fixtures::WriteTinyModel;
using tensor::DType;

constexpr auto kTypeF32 = static_cast<std::uint32_t>(DType::kF32);

std::vector<std::byte> Ramp(std::size_t n, int first = 0) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<int>(i) + first);
  return bytes;
}

std::string WriteFileText(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

int FilesInFolder(const std::string& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

GgufFile ParseBack(const GgufWriter& writer) {
  auto bytes = writer.Bytes();
  EXPECT_TRUE(bytes.has_value()) << bytes.error().message;
  GgufFile result = Got(ParseGguf(*bytes, "memory.gguf"));
  for (TensorView& tensor : result.tensors) tensor.data = {};  // they die with `bytes`
  return result;
}

// ---- Metadata ----------------------------------------------------------------------------------

TEST(GgufWriter, RoundTripsScalarsOfEveryType) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::pair<GgufType, MetadataValue>> values = {
      {GgufType::kUint8, std::int64_t{255}},
      {GgufType::kInt8, std::int64_t{-128}},
      {GgufType::kUint16, std::int64_t{65535}},
      {GgufType::kInt16, std::int64_t{-32768}},
      {GgufType::kUint32, std::int64_t{4294967295}},
      {GgufType::kInt32, std::int64_t{-2147483648LL}},
      {GgufType::kUint64, kMax},
      {GgufType::kInt64, kMin},
      {GgufType::kFloat32, 0.25},
      {GgufType::kFloat64, 0.1},
      {GgufType::kBool, true},
      {GgufType::kString, std::string("a\0b\xFF", 4)}};
  GgufWriter writer;
  for (std::size_t i = 0; i < values.size(); ++i)
    writer.SetAs("key." + std::to_string(i), values[i].first, values[i].second);
  const GgufFile file = ParseBack(writer);
  ASSERT_EQ(file.metadata.all().size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(*file.metadata.Find("key." + std::to_string(i)), values[i].second) << i;
}

TEST(GgufWriter, RoundTripsArraysOfEveryType) {
  using Ints = std::vector<std::int64_t>;
  const std::vector<std::pair<GgufType, MetadataValue>> values = {
      {GgufType::kUint8, Ints{0, 255}},
      {GgufType::kInt8, Ints{-128, 127}},
      {GgufType::kUint16, Ints{0, 65535}},
      {GgufType::kInt16, Ints{-32768, 32767}},
      {GgufType::kUint32, Ints{0, 4294967295}},
      {GgufType::kInt32, Ints{-2147483648LL, 2147483647}},
      {GgufType::kUint64, Ints{0, std::numeric_limits<std::int64_t>::max()}},
      {GgufType::kInt64, Ints{-1, 1}},
      {GgufType::kBool, Ints{1, 0, 1}},
      {GgufType::kFloat32, std::vector<double>{-1.5, 2}},
      {GgufType::kFloat64, std::vector<double>{0.1}},
      {GgufType::kString, std::vector<std::string>{"", "x", std::string(300, 'y')}},
      {GgufType::kInt32, Ints{}}};
  GgufWriter writer;
  for (std::size_t i = 0; i < values.size(); ++i)
    writer.SetAs("key." + std::to_string(i), values[i].first, values[i].second);
  const GgufFile file = ParseBack(writer);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(*file.metadata.Find("key." + std::to_string(i)), values[i].second) << i;
}

TEST(GgufWriter, ChoosesTheTypesThatRealFilesUse) {
  GgufWriter writer;
  writer.Set("n", std::int64_t{3000000000});
  writer.Set("m", std::int64_t{-1});
  writer.Set("x", 0.5);
  const auto bytes = *writer.Bytes();
  const auto type_after = [&](char key) {
    for (std::size_t at = 24; at + 13 <= bytes.size(); ++at) {
      if (std::memcmp(&bytes[at], "\1\0\0\0\0\0\0\0", 8) != 0 ||
          static_cast<char>(bytes[at + 8]) != key)
        continue;
      return static_cast<GgufType>(bytes[at + 9]);
    }
    return GgufType::kArray;
  };
  EXPECT_EQ(type_after('n'), GgufType::kUint32);
  EXPECT_EQ(type_after('m'), GgufType::kInt32);
  EXPECT_EQ(type_after('x'), GgufType::kFloat32);
}

TEST(Metadata, ConvertsOnlyWhereNothingIsLost) {
  Metadata metadata;
  metadata.Set("flag", true);
  metadata.Set("number", std::int64_t{7});
  metadata.Set("real", 0.5);
  metadata.Set("text", std::string("t"));
  metadata.Set("ints", std::vector<std::int64_t>{1});
  EXPECT_EQ(metadata.Bool("flag"), true);
  EXPECT_EQ(metadata.Int("flag"), 1);
  EXPECT_EQ(metadata.Float("number"), 7.0);
  EXPECT_EQ(metadata.Int("real"), std::nullopt);
  EXPECT_EQ(metadata.Bool("number"), std::nullopt);
  EXPECT_EQ(metadata.Float("text"), std::nullopt);
  EXPECT_EQ(*metadata.String("text"), "t");
  EXPECT_EQ(metadata.Strings("text"), nullptr);
  EXPECT_EQ(metadata.Ints("ints")->front(), 1);
  EXPECT_EQ(metadata.Floats("ints"), nullptr);
  EXPECT_EQ(metadata.Int("absent"), std::nullopt);
}

// ---- Tensors -----------------------------------------------------------------------------------

TEST(Checkpoint, GivesBackTensorsWithShapesAndBytes) {
  const auto a = Ramp(5 * 4), b = Ramp(2 * 3 * 4 * 2 * 4, 1), c = Ramp(34, 2);
  GgufWriter writer;
  writer.AddTensor("b", kTypeF32, std::array<std::int64_t, 1>{5}, a);
  writer.AddTensor("a", kTypeF32, std::array<std::int64_t, 4>{2, 3, 4, 2}, b);
  writer.AddTensor("blk.0.q", static_cast<std::uint32_t>(DType::kQ8_0),
                   std::array<std::int64_t, 2>{32, 1}, c);
  const std::string path = TemporaryFolder() + "/x.gguf";
  ASSERT_TRUE(writer.Write(path).has_value());

  const auto checkpoint = OpenCheckpoint(path).value();
  ASSERT_EQ(checkpoint->tensors().size(), 3u);
  EXPECT_EQ(checkpoint->tensors()[0].name, "b");
  EXPECT_EQ(checkpoint->format(), "GGUF v3");
  EXPECT_EQ(checkpoint->path(), path);
  EXPECT_EQ(checkpoint->file_bytes(), std::filesystem::file_size(path));
  const TensorView* found = checkpoint->Find("a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->n_dims, 4);
  EXPECT_EQ(found->shape, (std::array<std::int64_t, 4>{2, 3, 4, 2}));
  EXPECT_EQ(found->n_values(), 48);
  EXPECT_TRUE(std::equal(found->data.begin(), found->data.end(), b.begin(), b.end()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->data.data()) % 32, 0u);
  EXPECT_EQ(checkpoint->Find("b")->shape, (std::array<std::int64_t, 4>{5, 1, 1, 1}));
  EXPECT_EQ(checkpoint->Find("blk.0.q")->data.size(), 34u);
  EXPECT_EQ(checkpoint->Find("nothing"), nullptr);
}

TEST(Checkpoint, ReadsReleasedTensorsAgain) {
  TinyModelOptions options;
  const auto checkpoint = OpenCheckpoint(WriteTinyModel(TemporaryFolder(), options)).value();
  const TensorView& tensor = *checkpoint->Find("token_embd.weight");
  const std::vector<std::byte> before(tensor.data.begin(), tensor.data.end());
  checkpoint->Release(tensor.data);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), tensor.data.begin(), tensor.data.end()));
}

TEST(Checkpoint, OpensVersion2) {
  auto bytes = fixtures::TinyModelBytes({});
  bytes[4] = std::byte{2};
  const auto file = Got(ParseGguf(bytes, "two.gguf"));
  EXPECT_EQ(file.version, 2u);
}

TEST(Checkpoint, ListsTensorsOfTypesItCannotCompute) {
  for (std::uint32_t type = 0; type < 64; ++type) {
    const auto block = FindGgmlBlock(type);
    if (!block) continue;
    const auto data = Ramp(static_cast<std::size_t>(3 * block->bytes));
    GgufWriter writer;
    writer.AddTensor("t", type, std::array{3 * block->values}, data);
    const GgufFile file = ParseBack(writer);
    ASSERT_EQ(file.tensors.size(), 1u);
    EXPECT_EQ(file.tensors[0].ggml_type, type);
  }
  EXPECT_EQ(tensor::FindDType(24), nullptr);  // I8: listed, not computed
  EXPECT_TRUE(FindGgmlBlock(20).has_value());
}

TEST(Checkpoint, ReadsAVocabularyOf256kTokens) {
  std::vector<std::string> tokens(256 * 1024);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = "t" + std::to_string(i * 7919);
  GgufWriter writer;
  writer.Set("tokenizer.ggml.tokens", tokens);
  const GgufFile file = ParseBack(writer);
  ASSERT_NE(file.metadata.Strings("tokenizer.ggml.tokens"), nullptr);
  EXPECT_EQ(*file.metadata.Strings("tokenizer.ggml.tokens"), tokens);
}

// ---- The writer refuses what the reader would --------------------------------------------------

TEST(GgufWriter, RefusesWhatTheReaderWould) {
  const auto data = Ramp(16);
  const std::array<std::int64_t, 1> four{4};
  struct Case {
    std::function<void(GgufWriter&)> action;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {[](GgufWriter& w) { w.Set("", true); }, "is empty"},
      {[](GgufWriter& w) { w.Set("a\xFF", true); }, "UTF-8"},
      {[](GgufWriter& w) { w.Set(std::string(70000, 'k'), true); }, "longer than 65535"},
      {[](GgufWriter& w) { w.SetAs("k", GgufType::kUint8, std::int64_t{256}); }, "does not fit"},
      {[](GgufWriter& w) { w.SetAs("k", GgufType::kUint64, std::int64_t{-1}); }, "does not fit"},
      {[](GgufWriter& w) { w.SetAs("k", GgufType::kString, 1.5); }, "does not fit"},
      {[](GgufWriter& w) { w.SetAs("k", GgufType::kArray, true); }, "does not fit"},
      {[](GgufWriter& w) { w.SetAs("k", GgufType::kBool, std::vector<std::int64_t>{2}); },
       "does not fit"},
      {[](GgufWriter& w) { w.Set("general.alignment", std::int64_t{64}); }, "only 32"},
      {[&](GgufWriter& w) { w.AddTensor("", kTypeF32, four, data); }, "is empty"},
      {[&](GgufWriter& w) { w.AddTensor("t", 77, four, data); }, "type 77 is unknown"},
      {[&](GgufWriter& w) { w.AddTensor("t", kTypeF32, {}, data); }, "0 dimensions"},
      {[&](GgufWriter& w) {
         w.AddTensor("t", kTypeF32, std::array<std::int64_t, 5>{1, 1, 1, 1, 4}, data);
       },
       "5 dimensions"},
      {[&](GgufWriter& w) {
         w.AddTensor("t", kTypeF32, std::array<std::int64_t, 2>{4, 0}, data);
       },
       "dimension is 0"},
      {[&](GgufWriter& w) { w.AddTensor("t", kTypeF32, std::array<std::int64_t, 1>{5}, data); },
       "16 bytes given, 20 needed"},
      {[&](GgufWriter& w) { w.AddTensor("t", 8, four, data); }, "not a multiple of the 32"},
      {[&](GgufWriter& w) {
         w.AddTensor("t", kTypeF32, four, data), w.AddTensor("t", kTypeF32, four, data);
       },
       "added twice"},
  };
  for (const Case& c : cases) {
    GgufWriter writer;
    c.action(writer);
    writer.Set("later", true);  // the first error stays
    EXPECT_TRUE(Fails(writer.Bytes(), ErrorCode::kInvalidArgument, c.expected));
  }
}

TEST(GgufWriter, ReplacesAKeyInPlace) {
  GgufWriter writer;
  writer.Set("k", std::int64_t{1});
  writer.Set("k", std::string("second"));
  EXPECT_EQ(*ParseBack(writer).metadata.String("k"), "second");
}

TEST(GgufWriter, LeavesNothingBehindWhenItFails) {
  const std::string folder = TemporaryFolder();
  const std::string occupied = folder + "/occupied";
  std::filesystem::create_directory(occupied);
  std::filesystem::create_directory(occupied + "/full");
  GgufWriter writer;
  writer.Set("k", true);
  EXPECT_TRUE(Fails(writer.Write(occupied), ErrorCode::kIo));
  EXPECT_EQ(writer.Write(folder + "/missing/x.gguf").error().code, ErrorCode::kIo);
  writer.Set("", true);
  EXPECT_EQ(writer.Write(folder + "/x.gguf").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(FilesInFolder(folder), 1);
}

#if !defined(_WIN32)  // it limits no files
TEST(GgufWriter, KeepsTheOldFileWhenTheDiskRefusesTheNewOne) {
  const std::string folder = TemporaryFolder();
  const std::string path = WriteFileText(folder + "/x.gguf", "old");
  const std::vector<std::byte> data(1 << 20);
  GgufWriter writer;
  writer.AddTensor("t", kTypeF32, std::array<std::int64_t, 1>{1 << 18}, data);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1 << 16;
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = writer.Write(path);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_action);
  EXPECT_TRUE(Fails(status, ErrorCode::kIo));
  EXPECT_EQ(WholeFile(path), "old");
  EXPECT_EQ(FilesInFolder(folder), 1);
}
#endif

// ---- Split files -------------------------------------------------------------------------------

struct Part {
  std::string file_name;
  std::int64_t no;
  std::int64_t count;
  std::string tensor;
  std::int64_t n_tensors;
};

std::string WriteParts(const std::vector<Part>& parts) {
  const std::string folder = TemporaryFolder();
  const auto data = Ramp(4);
  for (const Part& part : parts) {
    GgufWriter writer;
    writer.SetAs("split.no", GgufType::kUint16, part.no);
    writer.SetAs("split.count", GgufType::kUint16, part.count);
    writer.SetAs("split.tensors.count", GgufType::kInt32, part.n_tensors);
    if (part.no == 0) writer.Set("general.name", std::string("whole"));
    writer.AddTensor(part.tensor, kTypeF32, std::array<std::int64_t, 1>{1}, data);
    EXPECT_TRUE(writer.Write(folder + "/" + part.file_name).has_value());
  }
  return folder;
}

TEST(Checkpoint, OpensAllPartsOfASplitModel) {
  const std::string folder = WriteParts({{"m-00001-of-00003.gguf", 0, 3, "a", 3},
                                         {"m-00002-of-00003.gguf", 1, 3, "c", 3},
                                         {"m-00003-of-00003.gguf", 2, 3, "b", 3}});
  const auto checkpoint = OpenCheckpoint(folder + "/m-00001-of-00003.gguf").value();
  EXPECT_EQ(checkpoint->format(), "GGUF v3, 3 files");
  ASSERT_EQ(checkpoint->tensors().size(), 3u);
  EXPECT_EQ(checkpoint->PathOf(*checkpoint->Find("b")), folder + "/m-00003-of-00003.gguf");
  EXPECT_EQ(checkpoint->Find("c")->data[3], std::byte{3});
  checkpoint->Release(checkpoint->Find("c")->data);
  EXPECT_EQ(checkpoint->Find("c")->data[3], std::byte{3});
  EXPECT_EQ(*checkpoint->metadata().String("general.name"), "whole");
  EXPECT_EQ(checkpoint->file_bytes(),
            3 * std::filesystem::file_size(folder + "/m-00002-of-00003.gguf") +
                std::filesystem::file_size(folder + "/m-00001-of-00003.gguf") -
                std::filesystem::file_size(folder + "/m-00002-of-00003.gguf"));
}

TEST(Checkpoint, OpensASplitOfOnePart) {
  const std::string folder = WriteParts({{"any.gguf", 0, 1, "a", 1}});
  EXPECT_EQ(OpenCheckpoint(folder + "/any.gguf").value()->format(), "GGUF v3");
}

TEST(Checkpoint, SaysWhatIsWrongWithASplitModel) {
  const Part first{"m-00001-of-00002.gguf", 0, 2, "a", 2};
  struct Case {
    std::vector<Part> parts;
    std::string opened;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {{first}, first.file_name, "/m-00002-of-00002.gguf: part 2 of 2 of a split model is missing"},
      {{first, {"m-00002-of-00002.gguf", 1, 2, "b", 2}},
       "m-00002-of-00002.gguf",
       "/m-00001-of-00002.gguf"},
      {{{"second.gguf", 1, 2, "b", 2}}, "second.gguf", "open its first part"},
      {{{"renamed.gguf", 0, 2, "a", 2}},
       "renamed.gguf",
       "rename it back to NAME-00001-of-00002.gguf"},
      {{first, {"m-00002-of-00002.gguf", 1, 3, "b", 2}},
       first.file_name,
       "does not say that it is part 2 of 2"},
      {{first, {"m-00002-of-00002.gguf", 0, 2, "b", 2}},
       first.file_name,
       "does not say that it is part 2 of 2"},
      {{first, {"m-00002-of-00002.gguf", 1, 2, "a", 2}}, first.file_name, "tensor a: is also in"},
      {{{"m-00001-of-00002.gguf", 0, 2, "a", 9}, {"m-00002-of-00002.gguf", 1, 2, "b", 9}},
       first.file_name,
       "9 tensors expected but the parts hold 2"},
      {{{"x.gguf", 0, 0, "a", 1}}, "x.gguf", "part 0 of 0 cannot be"},
      {{{"x.gguf", 3, 2, "a", 1}}, "x.gguf", "part 3 of 2 cannot be"},
  };
  for (const Case& c : cases)
    EXPECT_TRUE(Fails(OpenCheckpoint(WriteParts(c.parts) + "/" + c.opened), c.expected));
}

// ---- Files of other kinds ----------------------------------------------------------------------

TEST(Checkpoint, SaysWhatAFileOfAnotherKindIs) {
  using std::string_literals::operator""s;
  const std::string rest(300, '\xEE');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x40\0\0\0\0\0\0\0{\"a\": 1}"s + rest, "safetensors"},
      {"PK\x03\x04"s + rest, "PyTorch"},
      {"\x80\x02}"s + rest, "pickle"},
      {"tjgg"s + rest, "'ggjt'"},
      {"fmgg"s + rest, "'ggmf'"},
      {"lmgg"s + rest, "'ggml'"},
      {"algg"s + rest, "LoRA"},
      {"FUGG"s + rest, "bytes swapped"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0"s, "git lfs pull"},
      {"<!DOCTYPE html>"s + rest, "web page"},
      {"{\"config\": 1}"s + rest, "JSON"},
      {std::string(100, 'a') + "\n", "text file"},
      {std::string(500, '\0'), "zeros"},
      {"GGU", "only 3 bytes"},
      {rest, "unknown kind (it begins with the bytes ee ee ee ee)"},
  };
  const std::string path = TemporaryFolder() + "/model.bin";
  for (const auto& [text, expected] : cases) {
    const auto result = OpenCheckpoint(WriteFileText(path, text));
    ASSERT_TRUE(Fails(result, ErrorCode::kInvalidFile, expected));
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
}

TEST(Checkpoint, TellsMissingFilesFoldersAndEmptyFilesApart) {
  const std::string folder = TemporaryFolder();
  EXPECT_EQ(OpenCheckpoint(folder + "/none.gguf").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(OpenCheckpoint(folder).error().code, ErrorCode::kInvalidFile);
  EXPECT_EQ(OpenCheckpoint(WriteFileText(folder + "/empty.gguf", "")).error().code,
            ErrorCode::kInvalidFile);
}

// ---- The fixtures, and real files --------------------------------------------------------------

TEST(TinyModel, OpensForEveryArchitectureAndType) {
  const std::string folder = TemporaryFolder();
  for (const std::string arch : {"llama", "qwen2", "qwen3"})
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
      TinyModelOptions options;
      options.arch = arch;
      options.weight_type = type;
      options.weight_types = {{"output", DType::kF16}};
      options.rope_scaling = "linear";
      options.rope_freqs = true;
      const auto checkpoint = OpenCheckpoint(WriteTinyModel(folder, options)).value();
      EXPECT_EQ(*checkpoint->metadata().String("general.architecture"), arch);
      EXPECT_EQ(checkpoint->metadata().Int(arch + ".attention.head_count_kv"), 2);
      const TensorView* down = checkpoint->Find("blk.1.ffn_down.weight");
      ASSERT_NE(down, nullptr);
      EXPECT_EQ(down->ggml_type, static_cast<std::uint32_t>(type));
      EXPECT_EQ(down->shape, (std::array<std::int64_t, 4>{96, 64, 1, 1}));
      EXPECT_EQ(checkpoint->Find("output.weight")->ggml_type,
                static_cast<std::uint32_t>(DType::kF16));
      EXPECT_EQ(checkpoint->Find("blk.0.attn_q.bias") != nullptr, arch == "qwen2");
      EXPECT_EQ(checkpoint->Find("blk.0.attn_q_norm.weight") != nullptr, arch == "qwen3");
      EXPECT_EQ(checkpoint->Find("rope_freqs.weight")->shape[0], 8);
    }
}

TEST(TinyModel, QuantisedWeightsStayNearTheOriginal) {
  TinyModelOptions exact;
  exact.dim = exact.ff = 256;  // whole blocks of every type
  const std::string folder = TemporaryFolder();
  const auto original = OpenCheckpoint(WriteTinyModel(folder, exact)).value();
  const TensorView& expected = *original->Find("blk.0.attn_q.weight");
  const std::vector<std::pair<DType, float>> bounds = {{DType::kF16, 0.001f},
                                                       {DType::kBF16, 0.01f},
                                                       {DType::kQ8_0, 0.01f},
                                                       {DType::kQ4_0, 0.12f},
                                                       {DType::kQ6_K, 0.04f}};
  for (const auto& [type, bound] : bounds) {
    TinyModelOptions options = exact;
    options.weight_type = type;
    const auto checkpoint = OpenCheckpoint(WriteTinyModel(folder, options)).value();
    const TensorView& tensor = *checkpoint->Find("blk.0.attn_q.weight");
    std::vector<float> got(static_cast<std::size_t>(tensor.n_values()));
    tensor::Dequantize(type, tensor.data.data(), tensor.n_values(), got.data());
    float largest = 0, error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      float x = 0;
      std::memcpy(&x, expected.data.data() + 4 * i, 4);
      largest = std::max(largest, std::abs(x));
      error = std::max(error, std::abs(x - got[i]));
    }
    EXPECT_LT(error, bound * largest) << static_cast<int>(type);
    EXPECT_GT(error, 0.0f);
  }
}

TEST(TinyModel, SameSeedGivesSameBytesAndNoiseStaysNear) {
  TinyModelOptions options;
  EXPECT_EQ(fixtures::TinyModelBytes(options), fixtures::TinyModelBytes(options));
  TinyModelOptions noisy = options;
  noisy.noise = 0.2;
  const auto a = fixtures::TinyModelBytes(options), b = fixtures::TinyModelBytes(noisy);
  const auto parsed_a = ParseGguf(a, "a").value(), parsed_b = ParseGguf(b, "b").value();
  ASSERT_EQ(parsed_a.tensors.size(), parsed_b.tensors.size());
  const TensorView& x = parsed_a.tensors[0];
  const TensorView& y = parsed_b.tensors[0];
  ASSERT_EQ(x.name, "token_embd.weight");
  double square = 0, difference = 0;
  for (std::int64_t i = 0; i < x.n_values(); ++i) {
    float p = 0, q = 0;
    std::memcpy(&p, x.data.data() + 4 * i, 4);
    std::memcpy(&q, y.data.data() + 4 * i, 4);
    square += double{p} * p;
    difference += (double{p} - q) * (double{p} - q);
  }
  EXPECT_NEAR(std::sqrt(difference / square), 0.2, 0.02);
  options.seed = 2;
  EXPECT_NE(fixtures::TinyModelBytes(options), a);
}

TEST(TinyModel, VocabularyHasDistinctTokensOfEverySize) {
  for (const int size : {259, 288, 320, 2000, 18000}) {
    const auto vocabulary = fixtures::MakeTinyVocabulary(size);
    ASSERT_EQ(vocabulary.tokens.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(vocabulary.scores.size(), vocabulary.tokens.size());
    EXPECT_EQ(vocabulary.types.size(), vocabulary.tokens.size());
    auto tokens = vocabulary.tokens;
    std::sort(tokens.begin(), tokens.end());
    EXPECT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end());
    EXPECT_EQ(vocabulary.tokens[3 + 0x0A], "<0x0A>");
  }
}

TEST(Fixtures, TemporaryFoldersAreDistinctAndExist) {
  const std::string a = TemporaryFolder(), b = TemporaryFolder();
  EXPECT_NE(a, b);
  EXPECT_TRUE(std::filesystem::is_directory(a) && std::filesystem::is_directory(b));
}

TEST(Checkpoint, OpensRealFiles) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETOKEN_SOURCE_DIR) / ".." / "shared" / "models";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no real models at " << folder;
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto checkpoint = Got(OpenCheckpoint(entry.path().string()));
    const Metadata& metadata = checkpoint->metadata();
    ASSERT_NE(metadata.String("general.architecture"), nullptr);
    const auto* tokens = metadata.Strings("tokenizer.ggml.tokens");
    ASSERT_NE(tokens, nullptr);
    const TensorView* embedding = checkpoint->Find("token_embd.weight");
    ASSERT_NE(embedding, nullptr);
    EXPECT_EQ(embedding->shape[1], static_cast<std::int64_t>(tokens->size()));
    EXPECT_EQ(embedding->shape[0],
              metadata.Int(*metadata.String("general.architecture") + ".embedding_length"));
    ++opened;
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace foretoken::formats
