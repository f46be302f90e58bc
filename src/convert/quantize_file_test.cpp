// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"
#include "formats/checkpoint.h"
#include "formats/gguf_writer.h"
#include "tensor/dtype.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using formats::OpenCheckpoint;
using tensor::DType;

// Rows of whole super-blocks; 8 layers, so that the first and last eighth are a layer each.
std::string WideModel(const fixtures::TinyModelOptions& changes = {}) {
  fixtures::TinyModelOptions options = changes;
  options.dim = 256;
  options.ff = 256;
  options.n_layers = 8;
  return fixtures::WriteTinyModel(fixtures::TemporaryFolder(), options);
}

const std::string& SharedModel() {
  static const std::string path = WideModel();
  return path;
}

QuantizeOptions To(const std::string& type, const std::string& input = SharedModel()) {
  return {.input = input,
          .output = fixtures::TemporaryFolder() + "/out.gguf",
          .type = type,
          .threads = 2};
}

QuantizeReport Written(const QuantizeOptions& options) {
  auto report = QuantizeFile(options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : QuantizeReport{};
}

void ExpectRefused(const QuantizeOptions& options, ErrorCode code,
                   const std::vector<std::string>& words) {
  const auto report = QuantizeFile(options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, code) << report.error().message;
  for (const std::string& word : words)
    EXPECT_NE(report.error().message.find(word), std::string::npos) << report.error().message;
  const fs::path folder = fs::path(options.output).parent_path();
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
}

std::map<std::string, std::string> TypesOf(const std::string& path) {
  const auto checkpoint = OpenCheckpoint(path).value();
  std::map<std::string, std::string> types;
  for (const auto& t : checkpoint->tensors())
    types[t.name] = std::string(tensor::GgmlTypeName(t.ggml_type));
  return types;
}

std::vector<float> ValuesOf(const formats::TensorView& t) {
  std::vector<float> values(static_cast<std::size_t>(t.n_values()));
  const auto type = static_cast<DType>(t.ggml_type);
  tensor::Dequantize(type, t.data.data(), t.n_values(), values.data());
  return values;
}

// Layers whose tensor of this name has this type.
std::vector<int> LayersWith(const std::map<std::string, std::string>& types,
                            const std::string& tensor, const std::string& type) {
  std::vector<int> layers;
  for (int i = 0; types.contains("blk." + std::to_string(i) + "." + tensor); ++i)
    if (types.at("blk." + std::to_string(i) + "." + tensor) == type) layers.push_back(i);
  return layers;
}

// ---- Which tensor gets which type ---------------------------------------------------------------

TEST(QuantizeFile, PlainTypesReachEveryMatrixAndNoVector) {
  for (const char* type : {"F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "Q6_K"}) {
    const QuantizeOptions options = To(type);
    Written(options);
    const bool has_mix = std::string(type) != "F16" && std::string(type) != "BF16";
    for (const auto& [name, actual] : TypesOf(options.output)) {
      const bool norm = name.find("norm") != std::string::npos;
      const bool head = name == "output.weight" && has_mix && std::string(type) != "Q8_0";
      EXPECT_EQ(actual, norm ? "F32" : head ? "Q6_K" : type) << type << " " << name;
    }
  }
}

TEST(QuantizeFile, MixesGiveMoreBitsToTheLayersThatLlamaCppChooses) {
  struct Case {
    const char *type, *base, *more;
    std::vector<int> values, down;
  };
  // Eight layers: the first, the last, and every third between.
  const std::vector<int> many = {0, 3, 6, 7}, all = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const Case& c :
       {Case{"Q4_K_M", "Q4_K", "Q6_K", many, many}, Case{"q4_k", "Q4_K", "Q6_K", many, many},
        Case{"Q4_K_S", "Q4_K", "Q5_K", {0, 1, 2, 3}, {0}},
        Case{"Q5_K_M", "Q5_K", "Q6_K", many, many}, Case{"Q5_K_S", "Q5_K", "Q6_K", {}, {}},
        Case{"IQ4_NL", "IQ4_NL", "Q5_K", {}, {0}}, Case{"IQ4_XS", "IQ4_XS", "Q5_K", {}, {0}},
        Case{"Q3_K_S", "Q3_K", "Q4_K", {}, {}}, Case{"Q3_K_M", "Q3_K", "Q5_K", {0, 1}, {}},
        Case{"Q3_K_L", "Q3_K", "Q5_K", all, all}, Case{"Q2_K", "Q2_K", "Q3_K", all, all}}) {
    const QuantizeOptions options = To(c.type);
    Written(options);
    const auto types = TypesOf(options.output);
    EXPECT_EQ(LayersWith(types, "attn_v.weight", c.more), c.values) << c.type;
    EXPECT_EQ(LayersWith(types, "ffn_down.weight", c.more), c.down) << c.type;
    EXPECT_EQ(types.at("output.weight"), "Q6_K") << c.type;
    EXPECT_EQ(types.at("token_embd.weight"), c.base) << c.type;
    for (const char* name : {"attn_q.weight", "attn_k.weight", "ffn_gate.weight", "ffn_up.weight"})
      EXPECT_EQ(LayersWith(types, name, c.base).size(), 8u) << c.type << " " << name;
  }
}

TEST(QuantizeFile, FewBitsGiveMoreToTheOutputOfAttention) {
  for (const auto& [type, expected] :
       std::vector<std::pair<const char*, const char*>>{{"Q4_K_M", "Q4_K"},
                                                        {"Q3_K_S", "Q3_K"},
                                                        {"Q3_K_M", "Q4_K"},
                                                        {"Q3_K_L", "Q5_K"},
                                                        {"Q2_K", "Q3_K"},
                                                        {"IQ4_XS", "IQ4_XS"}}) {
    const QuantizeOptions options = To(type);
    Written(options);
    EXPECT_EQ(LayersWith(TypesOf(options.output), "attn_output.weight", expected).size(), 8u)
        << type;
  }
}

TEST(QuantizeFile, OnlyExpertsBecomeMxfp4) {
  QuantizeOptions options = To("MXFP4_MOE");
  Written(options);
  EXPECT_EQ(TypesOf(options.output).at("blk.0.ffn_up.weight"), "Q8_0");
  options.pure = true, options.output += "-pure";
  Written(options);
  EXPECT_EQ(TypesOf(options.output).at("blk.0.ffn_up.weight"), "MXFP4");
}

TEST(QuantizeFile, ATypeThatIsReadAndNotWrittenIsRefused) {
  QuantizeOptions options = To("Q4_K_M");
  options.output_tensor_type = "IQ2_XS";
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"IQ2_XS", "not known"});
}

TEST(QuantizeFile, ATiedEmbeddingIsTreatedAsTheHead) {
  const QuantizeOptions options = To("Q4_0", WideModel({.tied = true}));
  Written(options);
  EXPECT_EQ(TypesOf(options.output).at("token_embd.weight"), "Q6_K");
}

TEST(QuantizeFile, TheTableOfLayersIsTreatedAsTheEmbedding) {
  const QuantizeOptions options =
      To("Q4_K_M", WideModel({.arch = "gemma4", .head_dim = 64, .tied = true, .layer_input = 256}));
  Written(options);
  const auto types = TypesOf(options.output);
  EXPECT_EQ(types.at("per_layer_token_embd.weight"), "Q6_K");
  EXPECT_EQ(types.at("per_layer_model_proj.weight"), "F32");
  EXPECT_EQ(types.at("blk.1.inp_gate.weight"), "Q4_K");
}

TEST(QuantizeFile, NamedTypesAndPureWinOverTheRules) {
  QuantizeOptions options = To("Q4_K_M");
  options.output_tensor_type = "f16";
  options.token_embedding_type = "Q8_0";
  Written(options);
  EXPECT_EQ(TypesOf(options.output).at("output.weight"), "F16");
  EXPECT_EQ(TypesOf(options.output).at("token_embd.weight"), "Q8_0");
  options = To("Q4_K_M");
  options.pure = true;
  Written(options);
  for (const auto& [name, type] : TypesOf(options.output))
    EXPECT_EQ(type, name.find("norm") != std::string::npos ? "F32" : "Q4_K") << name;
}

TEST(QuantizeFile, RowsThatDoNotFitFallBackToASimplerType) {
  // Rows of 64: no super-blocks. Rows of 72 (ffn_down): no blocks at all.
  const std::string narrow = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.ff = 72});
  const std::map<std::string, std::string> expected = {
      {"Q4_K_S", "Q5_0"}, {"Q5_K_S", "Q5_1"}, {"Q6_K", "Q8_0"}, {"Q4_0", "Q4_0"}};
  for (const auto& [type, simple] : expected) {
    const QuantizeOptions options = To(type, narrow);
    const QuantizeReport report = Written(options);
    const auto types = TypesOf(options.output);
    EXPECT_EQ(types.at("blk.0.attn_q.weight"), simple) << type;
    EXPECT_EQ(types.at("blk.0.ffn_down.weight"), "F16") << type;
    EXPECT_EQ(types.at("output.weight"), "Q8_0") << type;
    EXPECT_GE(report.fallbacks, 2) << type;
  }
}

// ---- Numbers and metadata -----------------------------------------------------------------------

TEST(QuantizeFile, ReportsTheErrorThatTheFileHas) {
  for (const char* type : {"F16", "Q4_0", "Q4_K_M"}) {
    const QuantizeOptions options = To(type);
    const QuantizeReport report = Written(options);
    const auto before = OpenCheckpoint(options.input).value();
    const auto after = OpenCheckpoint(options.output).value();
    double sum = 0, count = 0;
    for (const auto& t : after->tensors()) {
      const auto a = ValuesOf(*before->Find(t.name)), b = ValuesOf(t);
      if (before->Find(t.name)->ggml_type == t.ggml_type) {
        EXPECT_EQ(a, b) << t.name;
        continue;
      }
      count += static_cast<double>(a.size());
      for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - b[i], 2);
    }
    EXPECT_NEAR(report.rmse, std::sqrt(sum / count), 1e-9) << type;
    EXPECT_GT(report.rmse, 0) << type;
    EXPECT_EQ(report.output_bytes, static_cast<std::int64_t>(fs::file_size(options.output)));
  }
}

TEST(QuantizeFile, IsTheSameForAnyNumberOfThreads) {
  QuantizeOptions one = To("Q4_K_M"), four = To("Q4_K_M");
  one.threads = 1;
  four.threads = 4;
  EXPECT_EQ(Written(one).rmse, Written(four).rmse);
  EXPECT_EQ(WholeFile(one.output), WholeFile(four.output));
}

TEST(QuantizeFile, AFloatFileGoesToF32AndBackUnchanged) {
  const QuantizeOptions half = To("F16");
  Written(half);
  const QuantizeOptions wide = To("F32", half.output);
  EXPECT_EQ(Written(wide).rmse, 0);
  const QuantizeOptions back = To("F16", wide.output);
  Written(back);
  EXPECT_EQ(WholeFile(back.output), WholeFile(half.output));
}

TEST(QuantizeFile, KeepsMetadataWithTheirTypes) {
  formats::GgufWriter writer;
  writer.SetAs("a.u8", formats::GgufType::kUint8, std::int64_t{7});
  writer.SetAs("a.f64", formats::GgufType::kFloat64, 0.1);
  writer.SetAs("a.bools", formats::GgufType::kBool, std::vector<std::int64_t>{1, 0});
  writer.SetAs("split.count", formats::GgufType::kUint16, std::int64_t{1});
  writer.SetAs("split.no", formats::GgufType::kUint16, std::int64_t{0});
  writer.Set("general.name", std::string("x"));
  const std::vector<float> values(64, 0.5f);
  writer.AddTensor("w.weight", 0, std::array<std::int64_t, 2>{32, 2},
                   std::as_bytes(std::span(values)));
  const std::string input = fixtures::TemporaryFolder() + "/in-00001-of-00001.gguf";
  ASSERT_TRUE(writer.Write(input).has_value());
  const QuantizeOptions options = To("Q8_0", input);
  Written(options);

  formats::GgufWriter expected;
  expected.SetAs("a.u8", formats::GgufType::kUint8, std::int64_t{7});
  expected.SetAs("a.f64", formats::GgufType::kFloat64, 0.1);
  expected.SetAs("a.bools", formats::GgufType::kBool, std::vector<std::int64_t>{1, 0});
  expected.Set("general.name", std::string("x"));
  expected.Set("general.quantization_version", std::int64_t{2});
  expected.Set("general.file_type", std::int64_t{7});
  const auto file = OpenCheckpoint(options.output).value();
  expected.AddTensor("w.weight", 8, std::array<std::int64_t, 2>{32, 2},
                     file->Find("w.weight")->data);
  const auto bytes = expected.Bytes().value();
  EXPECT_EQ(WholeFile(options.output),
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// ---- What is refused ----------------------------------------------------------------------------

TEST(QuantizeFile, RefusesTypesThatItDoesNotKnow) {
  ExpectRefused(To("IQ2_XS"), ErrorCode::kInvalidArgument, {"IQ2_XS", "Q4_K_M", "BF16"});
  ExpectRefused(To(""), ErrorCode::kInvalidArgument, {"''"});
  QuantizeOptions options = To("Q4_0");
  options.output_tensor_type = "Q4_K_M";
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"output head", "Q4_K_M", "Q6_K"});
}

TEST(QuantizeFile, QuantisesQuantisedFilesOnlyWhenAllowed) {
  const std::string quantised = WideModel({.weight_type = DType::kQ8_0});
  ExpectRefused(To("Q4_0", quantised), ErrorCode::kInvalidArgument,
                {"token_embd.weight", "Q8_0", "QuantizeOptions::allow_requantize"});
  QuantizeOptions options = To("Q4_0", quantised);
  options.allow_requantize = true;
  Written(options);
  EXPECT_EQ(TypesOf(options.output).at("blk.0.attn_q.weight"), "Q4_0");
  Written(To("F16", quantised));   // loses nothing to speak of
  Written(To("Q8_0", quantised));  // is copied
}

TEST(QuantizeFile, RefusesTheInputAsOutput) {
  const std::string input = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {});
  const std::string before = WholeFile(input);
  QuantizeOptions options = To("Q8_0", input);
  options.output = input;
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"is the input, too"});
  options.output = (fs::path(input).parent_path() / "link.gguf").string();
  fs::create_symlink(input, options.output);
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"is the input, too"});
  EXPECT_EQ(WholeFile(input), before);
}

TEST(QuantizeFile, RefusesOutputsThatAreNoFiles) {
  QuantizeOptions options = To("Q8_0");
  options.output = "";
  EXPECT_FALSE(QuantizeFile(options).has_value());
  options.output = fixtures::TemporaryFolder() + "/folder";
  fs::create_directory(options.output);
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"is a folder"});
  options.output = "/dev/null";
  EXPECT_FALSE(QuantizeFile(options).has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  options = To("Q8_0");
  options.output = (fs::path(options.output).parent_path() / "none" / "out.gguf").string();
  EXPECT_EQ(QuantizeFile(options).error().code, ErrorCode::kIo);
}

// The model with a key set to this value.
std::string WithKey(const std::string& key, formats::MetadataValue value) {
  const auto model = OpenCheckpoint(SharedModel());
  const std::string bytes = WholeFile(SharedModel());
  formats::GgufWriter writer;
  writer.CopyKeys(std::as_bytes(std::span(bytes)));
  writer.Set(key, std::move(value));
  for (const auto& t : (*model)->tensors())
    writer.AddTensor(t.name, t.ggml_type,
                     std::span(t.shape).first(static_cast<std::size_t>(t.n_dims)), t.data);
  const std::string path = fixtures::TemporaryFolder() + "/changed.gguf";
  EXPECT_TRUE(writer.Write(path));
  return path;
}

// Where the number of blocks is taken as it is, the rules for the layers overflow.
TEST(QuantizeFile, RefusesANumberOfBlocksThatCannotBe) {
  for (const std::int64_t n :
       {std::int64_t{1} << 31, std::int64_t{1} << 30, std::int64_t{-1}, std::int64_t{65537}})
    ExpectRefused(To("Q4_K_M", WithKey("llama.block_count", n)), ErrorCode::kInvalidFile,
                  {"llama.block_count: " + std::to_string(n)});
  Written(To("Q4_K_M", WithKey("llama.block_count", std::int64_t{65536})));
}

// A file with one matrix [32, 2] of these bytes.
std::string OneMatrix(std::uint32_t ggml_type, std::span<const std::byte> bytes) {
  formats::GgufWriter writer;
  writer.AddTensor("blk.0.odd.weight", ggml_type, std::array<std::int64_t, 2>{32, 2}, bytes);
  const std::string path = fixtures::TemporaryFolder() + "/odd.gguf";
  EXPECT_TRUE(writer.Write(path).has_value());
  return path;
}

TEST(QuantizeFile, NamesTheTensorThatCannotBeConverted) {
  constexpr std::uint32_t kI8 = 24;
  const std::vector<std::byte> numbers(64);
  ExpectRefused(To("Q4_0", OneMatrix(kI8, numbers)), ErrorCode::kUnsupported,
                {"blk.0.odd.weight", "I8", "F16"});
  std::vector<float> values(64, 1.0f);
  const auto with = [&](float value) {
    values[40] = value;
    return OneMatrix(0, std::as_bytes(std::span(values)));
  };
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")})
    ExpectRefused(To("Q4_0", with(value)), ErrorCode::kInvalidFile,
                  {"blk.0.odd.weight", "infinite or no number"});
  ExpectRefused(To("F16", with(70000)), ErrorCode::kInvalidFile,
                {"blk.0.odd.weight", "too large for F16", "BF16"});
  Written(To("BF16", with(70000)));
}

TEST(QuantizeFile, AStopLeavesWhatWasThere) {
  QuantizeOptions options = To("Q8_0");
  std::ofstream(options.output) << "before";
  double last = 0;
  options.on_progress = [&last](const QuantizeProgress& progress) {
    EXPECT_GE(progress.fraction, last);
    last = progress.fraction;
    return progress.fraction < 0.5;
  };
  ExpectRefused(options, ErrorCode::kIo, {"stopped"});
  EXPECT_EQ(WholeFile(options.output), "before");
  options.on_progress = [&last](const QuantizeProgress& progress) {
    last = progress.fraction;
    return true;
  };
  Written(options);
  EXPECT_EQ(last, 1.0);
  EXPECT_NE(WholeFile(options.output), "before");
}

TEST(QuantizeFile, JoinsASplitModelAndSparesItsParts) {
  const std::string folder = fixtures::TemporaryFolder();
  const std::vector<float> values(64, 0.5f);
  for (std::int64_t i = 0; i < 2; ++i) {
    formats::GgufWriter writer;
    writer.Set("split.no", i);
    writer.Set("split.count", std::int64_t{2});
    writer.AddTensor("t" + std::to_string(i) + ".weight", 0, std::array<std::int64_t, 2>{32, 2},
                     std::as_bytes(std::span(values)));
    const std::string name = "/m-0000" + std::to_string(i + 1) + "-of-00002.gguf";
    ASSERT_TRUE(writer.Write(folder + name).has_value());
  }
  QuantizeOptions options = To("Q8_0", folder + "/m-00001-of-00002.gguf");
  Written(options);
  EXPECT_EQ(TypesOf(options.output),
            (std::map<std::string, std::string>{{"t0.weight", "Q8_0"}, {"t1.weight", "Q8_0"}}));
  options.output = folder + "/m-00002-of-00002.gguf";
  ExpectRefused(options, ErrorCode::kInvalidArgument, {"is the input, too"});
}

}  // namespace
}  // namespace foretoken
