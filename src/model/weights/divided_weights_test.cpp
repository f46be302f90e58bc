// SPDX-License-Identifier: Apache-2.0
// What the ranks of a network have of its weights: together all of them, each an even part, and files
// of their own that keep it.
#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "model/arch/registry.h"
#include "model/weights/weights.h"

namespace foretoken::model {
namespace {

// A model whose matrices are large beside its norms.
fixtures::TinyModelOptions Larger(const std::string& architecture) {
  fixtures::TinyModelOptions o = fixtures::SmallestOf(architecture);
  o.dim = 256, o.ff = 640, o.n_heads = 16, o.vocab = 1024;
  o.weight_type = tensor::DType::kQ8_0;
  if (o.n_kv_heads > 1) o.n_kv_heads = 4;
  for (std::int64_t& ff : o.ff_by_layer) ff = ff == 0 ? 0 : o.ff;
  for (std::int64_t& heads : o.kv_heads_by_layer) heads = heads == 0 ? 0 : o.n_kv_heads;
  if (o.n_experts != 0) o.expert_ff = 256;
  if (o.shared_ff != 0) o.shared_ff = 256;
  if (o.layer_input != 0) o.layer_input = 32;
  if (o.q_rank != 0) o.q_rank = 64, o.head_dim = 96, o.rope_dimensions = 32, o.value_dim = 64;
  return o;
}

class DividedWeights : public testing::TestWithParam<std::string> {
 protected:
  DividedWeights()
      : file_(*formats::OpenCheckpoint(fixtures::WriteTinyModel(folder_, Larger(GetParam())))),
        config_(*ConfigFromMetadata(file_->metadata())) {
    config_.vocabulary = *VocabularyRows(*file_);
  }

  Weights Load(const Division& division, const LoadOptions& options = {}) {
    return Got(Weights::Load(*file_, config_, {}, division, pool_, options));
  }

  const std::string folder_ = fixtures::TemporaryFolder();
  std::unique_ptr<formats::Checkpoint> file_;
  ModelConfig config_;
  ThreadPool pool_{1};
};

TEST_P(DividedWeights, EachRankHasAnEvenPart) {
  const auto whole = static_cast<double>(Load({}).resident_bytes());
  for (const int n_ranks : {2, 4}) {
    const std::vector<int> even(static_cast<std::size_t>(n_ranks), 1);
    for (int rank = 0; rank < n_ranks; ++rank)
      EXPECT_LT(static_cast<double>(Load({rank, even}).resident_bytes()), 1.1 * whole / n_ranks)
          << rank << " of " << n_ranks;
  }
}

TEST_P(DividedWeights, FasterRanksHaveMore) {
  const auto whole = static_cast<double>(Load({}).resident_bytes());
  const std::vector<int> speeds = {1, 3};
  EXPECT_NEAR(static_cast<double>(Load({0, speeds}).resident_bytes()), whole / 4, whole / 20);
  EXPECT_NEAR(static_cast<double>(Load({1, speeds}).resident_bytes()), whole * 3 / 4, whole / 20);
}

TEST_P(DividedWeights, EachRankKeepsItsPart) {
  const TileCache cache(folder_ + "/kept");
  const std::vector<int> even = {1, 1};
  const auto load = [&](int rank) {
    std::string how;
    const Weights weights =
        Load({rank, even}, {.cache = &cache, .on_progress = [&](const auto& step) {
                              how = step.name;
                              return true;
                            }});
    EXPECT_NE(weights.tiles().path().find(rank == 0 ? "-1of2.tiles" : "-2of2.tiles"),
              std::string::npos)
        << weights.tiles().path();
    return how;
  };
  for (const int rank : {0, 1}) EXPECT_EQ(load(rank), "repacking");
  for (const int rank : {0, 1}) EXPECT_EQ(load(rank), "reading kept weights");
}

// Another division is another part of the same name.
TEST_P(DividedWeights, APartOfAnotherDivisionIsNotTaken) {
  const TileCache cache(folder_ + "/kept");
  const auto load = [&](std::vector<int> speeds) {
    std::string how;
    Load({1, speeds}, {.cache = &cache, .on_progress = [&](const LoadStep& step) {
                         how = step.name;
                         return true;
                       }});
    return how;
  };
  EXPECT_EQ(load({1, 1}), "repacking");
  EXPECT_EQ(load({1, 3}), "repacking");
  EXPECT_EQ(load({1, 3}), "reading kept weights");
}

// Two blocks of outputs for three ranks: one has none of them, and must read what the others send in the same form.
TEST(DividedCopy, HasItsTypesOnRanksWithoutAShareToo) {
  for (const char* arch : {"llama", "qwen3moe"}) {
    fixtures::TinyModelOptions tiny = fixtures::SmallestOf(arch);
    tiny.dim = tiny.ff = 64;
    if (tiny.n_experts != 0) tiny.expert_ff = 64;
    const auto file =
        *formats::OpenCheckpoint(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny));
    ModelConfig config = *ConfigFromMetadata(file->metadata());
    config.vocabulary = *VocabularyRows(*file);
    ThreadPool pool(1);
    bool none = false;
    for (const int rank : {0, 1, 2}) {
      const Division division(rank, {1, 1, 1});
      const Weights network = Got(Weights::Load(*file, config, {}, division, pool, {}));
      const CopyTypes types = {tensor::DType::kQ4_0, tensor::DType::kQ4_0};
      const Weights copy =
          Got(Weights::LoadCopy(*file, config, network, types, {}, division, pool, {}));
      const auto expect = [&](const Linear& w) {
        none |= w.n_out == 0;
        EXPECT_TRUE(w.quantised()) << arch << ", rank " << rank;
      };
      for (const LayerWeights& layer : copy.layers)
        std::visit(
            [&](const auto& w) {
              if constexpr (std::is_same_v<std::decay_t<decltype(w)>, ExpertsWeights>)
                expect(w.gate.first), expect(w.up.first), expect(w.down.first);
              else
                expect(w.gate), expect(w.up), expect(w.down);
            },
            layer.feed_forward);
    }
    EXPECT_TRUE(none) << arch;
  }
}

std::vector<std::string> DividedNames() {
  std::vector<std::string> names = {"mixtral"};
  for (const ArchitectureInfo* info : AllArchitectures()) names.emplace_back(info->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, DividedWeights, testing::ValuesIn(DividedNames()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken::model
