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
#include <string>
#include <vector>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
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

void ExpectNamed(const Error& error, const std::string& path) {
  EXPECT_EQ(error.code, ErrorCode::kInvalidFile);
  EXPECT_NE(error.message.find("not finite"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(path), std::string::npos) << error.message;
}

class NotFinite : public testing::TestWithParam<Wound> {};

TEST_P(NotFinite, TargetsEndTheRequest) {
  const std::string path = WriteWounded(GetParam());
  for (const kernels::Isa isa : kernels::AvailableIsas())
    for (const CacheType cache : {CacheType::kF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      const bool quantised = cache != CacheType::kF16;
      EngineOptions options{.model = path, .threads = quantised ? 2 : 1};
      options.isa = kernels::Name(isa);
      options.repack_cache.clear();
      options.cache_type_k = options.cache_type_v = cache;
      auto engine = Engine::Open(options);
      ASSERT_TRUE(engine) << engine.error().message;
      for (const float temperature : {0.0f, 0.8f}) {
        const auto completion = (*engine)->Generate(Asking(temperature));
        ASSERT_FALSE(completion) << options.isa << " " << static_cast<int>(cache) << ": "
                                 << completion->text;
        ExpectNamed(completion.error(), path);
        EXPECT_NE(completion.error().message.find(" tokens of text"), std::string::npos);
      }
      EXPECT_EQ((*engine)->load().used_blocks, 0);
    }
}

TEST_P(NotFinite, TargetsEndDecodersAndScores) {
  const std::string path = WriteWounded(GetParam());
  EngineOptions options{.model = path, .threads = 1};
  options.repack_cache.clear();
  auto decoder = SpeculativeDecoder::Create(options);
  ASSERT_TRUE(decoder);
  const auto completion = (*decoder)->Generate(Asking(0));
  ASSERT_FALSE(completion);
  ExpectNamed(completion.error(), path);
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine);
  const std::vector<std::int32_t> tokens = {1, 300, 301};
  const auto scores = (*engine)->Score(tokens);
  ASSERT_FALSE(scores);
  ExpectNamed(scores.error(), path);
  auto scorer = Scorer::Create(options);
  ASSERT_TRUE(scorer);
  const auto rows = (*scorer)->Score(tokens);
  ASSERT_FALSE(rows);
  ExpectNamed(rows.error(), path);
  EXPECT_EQ((*scorer)->length(0), 0);
}

// The text is that of plain decoding, and a notice says why there are no drafts.
TEST_P(NotFinite, DraftModelsDraftNothing) {
  EngineOptions options{.threads = 1};
  options.repack_cache.clear();
  options.speculative.controller = "fixed";
  options.model = fixtures::WriteTinyModel(
      fixtures::TemporaryFolder(), {.seed = 71, .head_dim = 32, .weight_type = GetParam().type});
  options.draft_model = WriteWounded(GetParam(), 0.05);
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  for (const float temperature : {0.0f, 0.8f}) {
    Request request = Asking(temperature);
    const auto drafted = (*engine)->Generate(request);
    ASSERT_TRUE(drafted) << drafted.error().message;
    EXPECT_EQ(drafted->speculation.drafted, 0);
    request.speculative.enabled = false;
    const auto plain = (*engine)->Generate(request);
    ASSERT_TRUE(plain);
    if (temperature == 0) EXPECT_EQ(drafted->token_ids, plain->token_ids);
  }
  const auto& notices = (*engine)->summary().notices;
  const auto n = std::count_if(notices.begin(), notices.end(), [&](const std::string& notice) {
    return notice.find(options.draft_model) != std::string::npos &&
           notice.find("not finite") != std::string::npos;
  });
  EXPECT_EQ(n, 1);
}

INSTANTIATE_TEST_SUITE_P(Weights, NotFinite, testing::ValuesIn(kWounds),
                         [](const auto& of) { return std::string(of.param.name); });

Result<Completion> WithProcessor(float value, float temperature, bool others) {
  EngineOptions options{.max_sequences = 2, .threads = 1};
  options.repack_cache.clear();
  options.model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 71});
  auto engine = Engine::Open(options);
  if (!engine) return Fail(std::move(engine).error());
  std::vector<Request> requests = {Asking(temperature)};
  requests[0].sampling.processors = {
      [value](std::span<const std::int32_t> text, std::span<float> logits) {
        if (text.size() > 8) logits[5] = value;
      }};
  if (!others) return (*engine)->Generate(requests[0]);
  // A request beside it is not affected.
  const auto bad = (*engine)->Begin(requests[0]), good = (*engine)->Begin(Asking(temperature));
  while ((*engine)->Step()) continue;
  EXPECT_EQ((*engine)->Take(*bad)->finish_reason, FinishReason::kError);
  return *(*engine)->Take(*good);
}

TEST(NotFiniteOfCallers, ProcessorsThatLeaveWhatIsNoNumberEndTheirRequest) {
  for (const float temperature : {0.0f, 0.8f}) {
    for (const float value : {kNan, kInf}) {
      const auto completion = WithProcessor(value, temperature, false);
      ASSERT_FALSE(completion) << completion->text;
      EXPECT_EQ(completion.error().code, ErrorCode::kInvalidArgument);
      EXPECT_NE(completion.error().message.find("logits processor: after "), std::string::npos)
          << completion.error().message;
      const auto other = WithProcessor(value, temperature, true);
      ASSERT_TRUE(other);
      EXPECT_EQ(other->token_ids.size(), 12u);
      EXPECT_FALSE(other->error);
    }
    const auto masked = WithProcessor(-kInf, temperature, false);
    ASSERT_TRUE(masked) << masked.error().message;
    EXPECT_EQ(masked->token_ids.size(), 12u);
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
    if (!verified)
      EXPECT_NE(verified.error().message.find("target logits: row 1 holds NaN"), std::string::npos);
  }
  const std::vector<float> banned(2 * 50, -kInf);
  const auto verified =
      Verify({.vocabulary_size = 50}, {.drafts = drafts, .target_logits = {banned, 50}});
  ASSERT_FALSE(verified);
  EXPECT_NE(verified.error().message.find("row 0 bans every token"), std::string::npos);
}

TEST(NotFiniteOfCallers, ABiasIsFiniteOrBans) {
  SamplingParameters sampling;
  for (const float value : {kNan, kInf, -kInf, -3.0f}) {
    sampling.logit_bias = {{9, value}};
    const Status status = sampling.Validate(50);
    EXPECT_EQ(status.has_value(), value < 0) << value;
    if (!status) EXPECT_NE(status.error().message.find("logit_bias"), std::string::npos);
  }
}

// The negative control: undamaged files of the same kinds give texts.
TEST(NotFiniteControl, WholeFilesGiveTexts) {
  for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kQ8_0}) {
    EngineOptions options{.threads = 1};
    options.repack_cache.clear();
    options.model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(),
                                             {.seed = 71, .head_dim = 32, .weight_type = type});
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine);
    const auto completion = (*engine)->Generate(Asking(0.8f));
    ASSERT_TRUE(completion) << completion.error().message;
    EXPECT_EQ(completion->token_ids.size(), 12u);
  }
}

}  // namespace
}  // namespace foretoken
