// SPDX-License-Identifier: Apache-2.0
// Weights that are NaN or infinite end a request with an error that names the model and the place,
// never with an empty or a wrong text. Those of a draft model only cost its drafts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/scorer.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/verification.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"

namespace foretoken {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInf = std::numeric_limits<float>::infinity();

std::vector<char> BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Overwrites bytes of a tensor, from `offset` on.
void Damage(const std::string& path, const std::string& tensor, std::size_t offset,
            const void* bytes, std::size_t n) {
  std::vector<char> all = BytesOf(path);
  std::size_t at = 0;
  {
    const auto file = formats::OpenCheckpoint(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto* const view = (*file)->Find(tensor);
    ASSERT_NE(view, nullptr) << tensor;
    const char* const data = reinterpret_cast<const char*>(view->data.data());
    const auto found = std::search(all.begin(), all.end(), data,
                                   data + std::min<std::size_t>(view->data.size(), 256));
    ASSERT_NE(found, all.end());
    at = static_cast<std::size_t>(found - all.begin()) + offset;
  }
  std::memcpy(all.data() + at, bytes, n);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(all.data(), static_cast<std::streamsize>(all.size()));
}

struct Wound {
  const char* name;
  const char* tensor;
  tensor::DType type;
  float value;
  bool scale = false;  // the F16 scale of a quantised block, not an F32 value
  int n_experts = 0;   // not 0: a mixture
};
constexpr Wound kWounds[] = {
    {"NormNan", "output_norm.weight", tensor::DType::kF32, kNan},
    {"NormOfABlockInfinite", "blk.0.attn_norm.weight", tensor::DType::kF32, kInf},
    {"NormBeforeQuantisedRows", "blk.1.ffn_norm.weight", tensor::DType::kQ8_0, kNan},
    {"NormBeforeQuantisedRowsInfinite", "blk.1.attn_norm.weight", tensor::DType::kQ8_0, -kInf},
    {"OneWeightOfTheOutputNan", "output.weight", tensor::DType::kF32, kNan},
    {"OneWeightOfTheOutputMinusInfinite", "output.weight", tensor::DType::kF32, -kInf},
    {"ScaleOfABlockNan", "blk.0.ffn_down.weight", tensor::DType::kQ8_0, kNan, true},
    {"ScaleOfTheOutputInfinite", "output.weight", tensor::DType::kQ8_0, kInf, true},
    {"ValuesNan", "blk.0.attn_v.weight", tensor::DType::kQ8_0, kNan, true},
    {"KeysInfinite", "blk.0.attn_k.weight", tensor::DType::kQ8_0, kInf, true},
    {"RouterNan", "blk.0.ffn_gate_inp.weight", tensor::DType::kQ8_0, kNan, false, 6},
    {"RouterInfinite", "blk.1.ffn_gate_inp.weight", tensor::DType::kF32, kInf, false, 6},
    {"OnlyExpertNan", "blk.0.ffn_down_exps.weight", tensor::DType::kF32, kNan, false, 2},
};

std::string WriteWounded(const Wound& wound, double noise = 0) {
  fixtures::TinyModelOptions model{
      .seed = 71, .head_dim = 32, .weight_type = wound.type, .noise = noise};
  if (wound.n_experts != 0) model.arch = "qwen3moe", model.n_experts = wound.n_experts;
  const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), model);
  const std::uint16_t half = std::isnan(wound.value) ? 0x7e00 : 0x7c00;
  if (wound.scale)
    Damage(path, wound.tensor, 0, &half, sizeof half);
  else
    Damage(path, wound.tensor, 20 * sizeof(float), &wound.value, sizeof wound.value);
  return path;
}

Request Asking(float temperature) {
  Request request;
  request.prompt = "once upon a time";
  request.max_new_tokens = 12;
  request.ignore_eos = true;
  request.sampling.temperature = temperature;
  return request;
}

template <typename T>
void ExpectNamed(const Result<T>& result, const std::string& path) {
  EXPECT_TRUE(Fails(result, ErrorCode::kInvalidFile, "not finite"));
  EXPECT_TRUE(Fails(result, path));
}

// One thread, and no tiles are kept.
EngineOptions OptionsWith(const std::string& model) {
  EngineOptions options{.model = model, .threads = 1};
  options.repack_cache.clear();
  return options;
}

class NotFinite : public testing::TestWithParam<Wound> {};

TEST_P(NotFinite, TargetsEndTheRequest) {
  const std::string path = WriteWounded(GetParam());
  for (const kernels::Isa isa : kernels::AvailableIsas())
    for (const CacheType cache : {CacheType::kF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      const bool quantised = cache != CacheType::kF16;
      EngineOptions options = OptionsWith(path);
      options.threads = quantised ? 2 : 1;
      options.isa = kernels::Name(isa);
      options.cache_type_k = options.cache_type_v = cache;
      SCOPED_TRACE(options.isa + " " + std::to_string(static_cast<int>(cache)));
      const auto engine = OpenEngine(options);
      for (const float temperature : {0.0f, 0.8f}) {
        const auto completion = engine->Generate(Asking(temperature));
        ExpectNamed(completion, path);
        EXPECT_TRUE(Fails(completion, " tokens of text"));
      }
      EXPECT_EQ(engine->load().used_blocks, 0);
    }
}

TEST_P(NotFinite, TargetsEndDecodersAndScores) {
  const std::string path = WriteWounded(GetParam());
  const EngineOptions options = OptionsWith(path);
  ExpectNamed(Got(SpeculativeDecoder::Create(options))->Generate(Asking(0)), path);
  const std::vector<std::int32_t> tokens = {1, 300, 301};
  ExpectNamed(OpenEngine(options)->Score(tokens), path);
  const auto scorer = Got(Scorer::Create(options));
  ExpectNamed(scorer->Score(tokens), path);
  EXPECT_EQ(scorer->length(0), 0);
}

// The text is that of plain decoding, and a notice says why there are no drafts.
TEST_P(NotFinite, DraftModelsDraftNothing) {
  EngineOptions options = OptionsWith(fixtures::WriteTinyModel(
      fixtures::TemporaryFolder(), {.seed = 71, .head_dim = 32, .weight_type = GetParam().type}));
  options.speculative.controller = "fixed";
  options.draft_model = WriteWounded(GetParam(), 0.05);
  const auto engine = OpenEngine(options);
  for (const float temperature : {0.0f, 0.8f}) {
    Request request = Asking(temperature);
    const Completion drafted = Generated(*engine, request);
    EXPECT_EQ(drafted.speculation.drafted, 0);
    request.speculative.enabled = false;
    const Completion plain = Generated(*engine, request);
    if (temperature == 0) EXPECT_EQ(drafted.token_ids, plain.token_ids);
  }
  const auto& notices = engine->summary().notices;
  const auto n = std::count_if(notices.begin(), notices.end(), [&](const std::string& notice) {
    return notice.find(options.draft_model) != std::string::npos &&
           notice.find("not finite") != std::string::npos;
  });
  EXPECT_EQ(n, 1);
}

INSTANTIATE_TEST_SUITE_P(Weights, NotFinite, testing::ValuesIn(kWounds),
                         [](const auto& of) { return std::string(of.param.name); });

Result<Completion> WithProcessor(float value, float temperature, bool others) {
  EngineOptions options =
      OptionsWith(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 71}));
  options.max_sequences = 2;
  const auto engine = OpenEngine(options);
  std::vector<Request> requests = {Asking(temperature)};
  requests[0].sampling.processors = {
      [value](std::span<const std::int32_t> text, std::span<float> logits) {
        if (text.size() > 8) logits[5] = value;
      }};
  if (!others) return engine->Generate(requests[0]);
  // A request beside it is not affected.
  const auto bad = engine->Begin(requests[0]), good = engine->Begin(Asking(temperature));
  while (engine->Step()) continue;
  EXPECT_EQ(engine->Take(*bad)->finish_reason, FinishReason::kError);
  return *engine->Take(*good);
}

TEST(NotFiniteOfCallers, ProcessorsThatLeaveWhatIsNoNumberEndTheirRequest) {
  for (const float temperature : {0.0f, 0.8f}) {
    for (const float value : {kNan, kInf}) {
      EXPECT_TRUE(Fails(WithProcessor(value, temperature, false), ErrorCode::kInvalidArgument,
                        "logits processor: after "));
      const Completion other = Got(WithProcessor(value, temperature, true));
      EXPECT_EQ(other.token_ids.size(), 12u);
      EXPECT_FALSE(other.error);
    }
    EXPECT_EQ(Got(WithProcessor(-kInf, temperature, false)).token_ids.size(), 12u);
  }
}

TEST(NotFiniteOfCallers, GivenLogitsAreNamedByRow) {
  const std::vector<std::int32_t> drafts = {4};
  for (const float value : {kNan, kInf, -kInf}) {
    std::vector<float> logits(2 * 50, 0.5f);
    logits[50 + 7] = value;
    VerificationOptions options{.vocabulary_size = 50};
    const auto verified = Verify(options, {.drafts = drafts, .target_logits = {logits, 50}});
    ASSERT_EQ(verified.has_value(), value == -kInf);
    if (!verified) EXPECT_TRUE(Fails(verified, "target logits: row 1 holds NaN"));
  }
  const std::vector<float> banned(2 * 50, -kInf);
  EXPECT_TRUE(
      Fails(Verify({.vocabulary_size = 50}, {.drafts = drafts, .target_logits = {banned, 50}}),
            "row 0 bans every token"));
}

TEST(NotFiniteOfCallers, ABiasIsFiniteOrBans) {
  SamplingParameters sampling;
  for (const float value : {kNan, kInf, -kInf, -3.0f}) {
    sampling.logit_bias = {{9, value}};
    const Status status = sampling.Validate(50);
    EXPECT_EQ(status.has_value(), value < 0) << value;
    if (!status) EXPECT_TRUE(Fails(status, "logit_bias"));
  }
}

// The negative control: undamaged files of the same kinds give texts.
TEST(NotFiniteControl, WholeFilesGiveTexts) {
  for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kQ8_0}) {
    const auto engine = OpenEngine(OptionsWith(fixtures::WriteTinyModel(
        fixtures::TemporaryFolder(), {.seed = 71, .head_dim = 32, .weight_type = type})));
    EXPECT_EQ(Generated(*engine, Asking(0.8f)).token_ids.size(), 12u);
  }
}

}  // namespace
}  // namespace foretoken
