// SPDX-License-Identifier: Apache-2.0
#include "train/networks/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "train/networks/gguf.h"
#include "train/networks/model_task.h"
#include "train/run/optimizer.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

Tensor Noise(torch::IntArrayRef sizes, unsigned seed, double spread = 1) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::empty(sizes, torch::kDouble).normal_(0, spread, generator);
}

// Head size is not width over heads, and each key head has two query heads.
NetworkConfig TinyConfig() {
  NetworkConfig c;
  c.architecture = "llama";
  c.n_layers = 2, c.dim = 16, c.ff = 24, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 8;
  c.vocabulary = 29, c.context_length = 256;
  c.rope.n_rot = 8;
  return c;
}

// F64 weights that are large enough for every one of them to matter.
Parameters Doubles(const NetworkConfig& config, bool tied) {
  Parameters parameters = InitModel(config, tied, 1);
  unsigned seed = 7;
  for (Parameter& p : parameters.all())
    p.value = p.kind == ParameterKind::kGain
                  ? p.value.to(torch::kDouble) + Noise(p.value.sizes(), ++seed, 0.2)
                  : Noise(p.value.sizes(), ++seed, 0.4);
  return parameters;
}

struct LossCase {
  NetworkConfig config;
  Tensor tokens, targets, distribution;
  bool divergence = false;

  Tensor Loss(const Leaves& leaves) const {
    const Tensor logits = Logits(leaves, RunModel(config, leaves, tokens)).flatten(0, 1);
    return divergence ? Divergence(logits, distribution) : CrossEntropy(logits, targets);
  }
  double Value(const Parameters& parameters) const {
    torch::NoGradGuard no_gradients;
    return Loss(Leaves(parameters, torch::kDouble, false)).item<double>();
  }
};

LossCase MakeCase(const NetworkConfig& config, int batch, int length, bool divergence) {
  auto generator = at::detail::createCPUGenerator(5);
  const auto ids = [&](torch::IntArrayRef sizes) {
    return torch::randint(config.vocabulary, sizes, generator, torch::kInt64);
  };
  LossCase c{config, ids({batch, length}), ids({batch * length}),
             torch::softmax(Noise({batch * length, config.vocabulary}, 6, 2), -1), divergence};
  c.targets[3] = -1;  // both count for nothing
  c.distribution[3].zero_();
  return c;
}

// In a random direction of each tensor, and in the direction of its first value.
void CheckGradients(const LossCase& c, Parameters& parameters) {
  const Leaves leaves(parameters, torch::kDouble, true);
  c.Loss(leaves).backward();
  const auto gradients = leaves.Gradients(parameters);
  constexpr double kStep = 1e-5;
  unsigned seed = 99;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& p = parameters.all()[i];
    Tensor first = torch::zeros_like(p.value);
    first.flatten()[0] = 1;
    for (const Tensor& direction : {Noise(p.value.sizes(), ++seed), first}) {
      const Tensor kept = p.value;
      p.value = kept + kStep * direction;
      const double above = c.Value(parameters);
      p.value = kept - kStep * direction;
      const double below = c.Value(parameters);
      p.value = kept;
      const double wanted = (above - below) / (2 * kStep),
                   found = (gradients[i] * direction).sum().item<double>();
      EXPECT_NEAR(found, wanted, 1e-8 + 1e-5 * std::fabs(wanted)) << p.name;
    }
  }
}

TEST(Gradients, OfALlamaModelAreThoseOfFiniteDifferences) {
  Parameters parameters = Doubles(TinyConfig(), false);
  for (const bool divergence : {false, true})
    CheckGradients(MakeCase(TinyConfig(), 2, 11, divergence), parameters);
}

TEST(Gradients, OfAnotherRotationAndATiedHeadAreThoseOfFiniteDifferences) {
  NetworkConfig config = TinyConfig();
  config.rope = {.interleaved = false, .n_rot = 4, .freq_base = 500, .freq_scale = 0.5};
  config.rope_factors = {1, 3};
  Parameters parameters = Doubles(config, true);
  for (const bool divergence : {false, true})
    CheckGradients(MakeCase(config, 2, 11, divergence), parameters);
}

TEST(Gradients, OfAConvolutionAndNormedHeadsAreThoseOfFiniteDifferences) {
  NetworkConfig config = TinyConfig();
  config.qk_norm = true, config.output_norm = "token_embd_norm";
  config.convolutions = {0}, config.taps = 3;
  Parameters parameters = Doubles(config, true);
  ASSERT_TRUE(parameters.Has("blk.0.shortconv.in_proj.weight"));
  ASSERT_TRUE(parameters.Has("blk.1.attn_q_norm.weight"));
  for (const bool divergence : {false, true})
    CheckGradients(MakeCase(config, 2, 11, divergence), parameters);
}

TEST(Gradients, OfAttentionOverSeveralChunksOfQueriesAreThoseOfFiniteDifferences) {
  NetworkConfig config = TinyConfig();
  config.n_layers = 1;
  Parameters parameters = Doubles(config, false);
  CheckGradients(MakeCase(config, 1, 150, false), parameters);  // chunks are of 128
}

TEST(Losses, AreTheirDefinitions) {
  const Tensor logits = Noise({600, 29}, 1, 2);  // more rows than are taken together
  const Tensor rows = torch::log_softmax(logits, -1);
  Tensor distribution = torch::softmax(Noise({600, 29}, 2, 2), -1);
  Tensor targets = torch::arange(600, torch::kInt64).remainder(29);
  const double divergence = (distribution * (distribution.log() - rows)).sum().item<double>() / 600;
  EXPECT_NEAR(Divergence(logits, distribution).item<double>(), divergence, 1e-12);
  EXPECT_NEAR(Divergence(distribution.log(), distribution).item<double>(), 0, 1e-12);
  const Tensor losses = -rows.gather(1, targets.unsqueeze(1)).squeeze(1);
  EXPECT_NEAR(CrossEntropy(logits, targets).item<double>(), losses.mean().item<double>(), 1e-12);
  targets.narrow(0, 0, 100).fill_(-1);
  EXPECT_NEAR(CrossEntropy(logits, targets).item<double>(),
              losses.narrow(0, 100, 500).mean().item<double>(), 1e-12);
}

TEST(Attention, SeesNothingThatComesLater) {
  const NetworkConfig config = TinyConfig();
  const Parameters parameters = Doubles(config, false);
  const Leaves leaves(parameters, torch::kDouble, false);
  Tensor tokens = MakeCase(config, 1, 140, false).tokens;
  const Tensor before = RunModel(config, leaves, tokens);
  for (const int changed : {60, 130}) {
    Tensor other = tokens.clone();
    other[0][changed] = (other[0][changed] + 1) % config.vocabulary;
    const Tensor difference = (RunModel(config, leaves, other) - before).abs().amax({0, 2});
    EXPECT_LT(difference.narrow(0, 0, changed).max().item<double>(), 1e-12);
    EXPECT_GT(difference.narrow(0, changed, 140 - changed).min().item<double>(), 1e-9);
  }
}

struct Twin {
  std::string name;
  ModelShape shape;
};
void PrintTo(const Twin& twin, std::ostream* out) {
  *out << twin.name;
}

// A model of these sizes that the engine runs from a file.
class Forward : public testing::TestWithParam<Twin> {
 protected:
  void SetUp() override {
    static const std::string folder = fixtures::TemporaryFolder();
    const auto vocabulary = *formats::OpenCheckpoint(fixtures::WriteTinyModel(folder, {}));
    config_ = *ConfigOf(GetParam().shape, 320);
    parameters_ = Doubles(config_, GetParam().shape.tied);
    for (Parameter& p : parameters_.all()) p.value = p.value.to(torch::kFloat);
    const std::string path = folder + "/" + GetParam().name + ".gguf";
    ASSERT_TRUE(
        WriteModel(path, config_, parameters_, vocabulary->metadata(), FileType::kF32, "twin", ""));
    engine_ = Got(Engine::Open({.model = path,
                                .speculative = {.method = "none"},
                                .threads = 1,
                                .cache_type_k = CacheType::kF32,
                                .cache_type_v = CacheType::kF32}));
  }

  // Log-probabilities [tokens, vocabulary] by libtorch in F32.
  Tensor Distributions(const std::vector<std::int32_t>& tokens) const {
    torch::NoGradGuard no_gradients;
    const Leaves leaves(parameters_, torch::kFloat, false);
    const Tensor row = torch::tensor(tokens).to(torch::kInt64).unsqueeze(0);
    return torch::log_softmax(Logits(leaves, RunModel(config_, leaves, row))[0], -1);
  }

  NetworkConfig config_;
  Parameters parameters_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(Forward, AgreesWithTheEngineAlongATextLongerThanAChunk) {
  std::mt19937 random(3);
  std::vector<std::int32_t> tokens(200);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 320);
  const auto scores = Got(engine_->Score(tokens));
  const Tensor distributions = Distributions(tokens);
  EXPECT_GT(distributions[8].max().item<float>() - distributions[8].min().item<float>(), 1)
      << "flat distributions show little";
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    ASSERT_NEAR(distributions[static_cast<std::int64_t>(i)][tokens[i + 1]].item<float>(), scores[i],
                1e-3)
        << "position " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Models, Forward,
    testing::Values(
        Twin{"own_head",
             {.layers = 2,
              .dim = 32,
              .heads = 4,
              .kv_heads = 2,
              .ff = 48,
              .context = 256,
              .tied = false}},
        Twin{"tied", {.layers = 1, .dim = 32, .heads = 2, .kv_heads = 1, .ff = 40, .context = 256}},
        Twin{"convolutions",
             {.layers = 4,
              .dim = 32,
              .heads = 4,
              .kv_heads = 2,
              .ff = 48,
              .context = 256,
              .convolutions = {0, 2}}}),
    [](const auto& twin) { return twin.param.name; });

TEST(Orthogonal, GivesSingularValuesNearOne) {
  for (const auto& [rows, columns] : {std::pair{48, 64}, {24, 96}, {128, 40}})
    for (const torch::Dtype type : {torch::kFloat, torch::kBFloat16}) {
      // Directions from a random matrix, sizes that differ by 50.
      const auto [u, s, v] = at::linalg_svd(Noise({rows, columns}, 11), false);
      const Tensor spread = torch::linspace(0.02, 1, s.size(0), torch::kDouble),
                   matrix = torch::mm(u * spread, v).to(torch::kFloat);
      const Tensor made = Orthogonal(1e-3 * matrix, type);
      ASSERT_EQ(made.sizes(), matrix.sizes());
      const Tensor sizes = std::get<1>(at::linalg_svd(made, false));
      EXPECT_GT(sizes.min().item<float>(), 0.6) << rows << "x" << columns;
      EXPECT_LT(sizes.max().item<float>(), 1.3) << rows << "x" << columns;
    }
}

TEST(Orthogonal, KeepsTheDirectionsOfTheMatrix) {
  const Tensor matrix = Noise({20, 60}, 12).to(torch::kFloat);
  const auto [u, s, v] = at::linalg_svd(matrix, false);
  const Tensor turned = torch::mm(u.t(), torch::mm(Orthogonal(matrix, torch::kFloat), v.t()));
  const Tensor besides = turned - torch::diag(torch::diagonal(turned));
  EXPECT_LT(besides.abs().max().item<float>(), 1e-3);
  EXPECT_GT(torch::diagonal(turned).min().item<float>(), 0.6);
}

// A first step of AdamW moves each value by the rate, a step of Muon each direction of a matrix
// alike; and the clip acts on all gradients together.
TEST(Optimizer, StepsAreOfTheSizesThatItsRatesState) {
  Parameters parameters;
  parameters.Add("blk.0.w", ParameterKind::kMatrix, torch::zeros({12, 48}));
  parameters.Add("table", ParameterKind::kTable, torch::zeros({5, 7}));
  OptimizerOptions options{.rate = 0.01, .table_rate = 0.003};
  Optimizer optimizer(parameters, options);
  const Tensor matrix = Noise({12, 48}, 13).to(torch::kFloat),
               table = Noise({5, 7}, 14).to(torch::kFloat);
  const double norm = optimizer.Step(parameters, {matrix.clone(), table.clone()}, 0.5);
  EXPECT_NEAR(norm, std::sqrt((matrix.square().sum() + table.square().sum()).item<double>()), 1e-3);
  EXPECT_TRUE(torch::allclose(parameters["table"], -0.5 * 0.003 * table.sign(), 1e-3));
  const double size = 0.5 * 0.01 * 0.2 * std::sqrt(48.0);
  const Tensor sizes = std::get<1>(at::linalg_svd(parameters["blk.0.w"], false)) / size;
  EXPECT_GT(sizes.min().item<float>(), 0.6);
  EXPECT_LT(sizes.max().item<float>(), 1.3);
  EXPECT_LT((parameters["blk.0.w"] * matrix).sum().item<float>(), 0) << "downhill";
}

}  // namespace
}  // namespace foretoken::train
