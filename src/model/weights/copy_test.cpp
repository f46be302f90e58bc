// SPDX-License-Identifier: Apache-2.0
// Copies of networks with fewer bits, beside files that hold the same numbers in these types.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "model/tiny_runner_testing.h"
#include "model/weights/piece_hash.h"
#include "model/weights/tile_header.h"

namespace foretoken::model {
namespace {

using tensor::DType;

const std::vector<Token> kCopyText = {5, 9, 3, 77, 120, 6, 8, 44, 210, 9, 3, 77};

// The logits of the text's tokens [begin, end), of which `kept` stay.
std::vector<float> CopyLogits(Runner& runner, kv::BlockTables& tables, int begin, int end,
                              int kept) {
  return LogitsOf(runner, tables, kCopyText, begin, end, kept);
}

// A copy computes what a file with its types does; its embedding is the network's own.
TEST(Copy, ComputesWhatAFileOfItsTypesDoes) {
  for (const auto& [layers, output] : {std::pair(DType::kQ4_0, DType::kQ8_0),
                                       {DType::kQ3_K, DType::kQ4_K},
                                       {DType::kQ2_K, DType::kQ2_K},
                                       {DType::kQ4_K, DType::kQ6_K}})
    for (const char* arch : {"llama", "qwen3moe"}) {
      fixtures::TinyModelOptions tiny{.arch = arch, .seed = 91, .dim = 256, .ff = 256};
      if (std::string_view(arch) == "qwen3moe") tiny.n_experts = 6, tiny.expert_ff = 256;
      const std::string folder = fixtures::TemporaryFolder();
      TinyRunner network(fixtures::WriteTinyModel(folder, tiny));
      tiny.weight_type = layers;
      tiny.scales = tensor::Scales::kClosest;
      tiny.weight_types = {{"output", output}, {"token_embd", DType::kF32}};
      TinyRunner same(fixtures::WriteTinyModel(folder, tiny));
      const auto copy = network.Copy({layers, output});
      kv::BlockTables one(network.shape), other(same.shape);
      const int n = static_cast<int>(kCopyText.size());
      const auto a = CopyLogits(*copy, one, 0, n, 0), b = CopyLogits(*same.runner, other, 0, n, 0);
      ASSERT_EQ(a.size(), b.size());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0)
          << arch << " " << NameOf({layers, output});
      EXPECT_LT(copy->info().weight_bytes, network.runner->info().weight_bytes);
    }
}

TEST(Copy, HasTypesOfItsPartsWhereTheyAreNamed) {
  const CopyTypes types = {.layers = DType::kQ2_K,
                           .output = DType::kQ8_0,
                           .attention = DType::kQ4_K,
                           .experts = DType::kQ3_K,
                           .ends = DType::kQ6_K};
  for (const auto& [tensor, type] : {std::pair("output.weight", DType::kQ8_0),
                                     {"token_embd.weight", DType::kQ8_0},
                                     {"blk.0.attn_q.weight", DType::kQ6_K},
                                     {"blk.0.ffn_up_exps.weight", DType::kQ6_K},
                                     {"blk.11.ffn_up.weight", DType::kQ6_K},
                                     {"blk.1.attn_output.weight", DType::kQ4_K},
                                     {"blk.1.ssm_in.weight", DType::kQ4_K},
                                     {"blk.1.shortconv.in_proj.weight", DType::kQ4_K},
                                     {"blk.10.ffn_gate_up_exps.weight", DType::kQ3_K},
                                     {"blk.10.ffn_up_shexp.weight", DType::kQ2_K},
                                     {"blk.1.ffn_down.weight", DType::kQ2_K},
                                     {"blk.1.inp_gate.weight", DType::kQ2_K},
                                     {"blk.110.ffn_up.weight", DType::kQ2_K}})
    EXPECT_EQ(types.TypeOf(tensor, 11), type) << tensor;
  const CopyTypes plain = {DType::kQ2_K, DType::kQ4_K};
  for (const char* tensor : {"blk.0.attn_q.weight", "blk.1.ffn_up_exps.weight"})
    EXPECT_EQ(plain.TypeOf(tensor, 1), DType::kQ2_K) << tensor;
}

// As a file that holds its matrices in these types.
TEST(Copy, ComputesWithTypesOfItsParts) {
  fixtures::TinyModelOptions tiny{
      .arch = "qwen3moe", .seed = 97, .n_layers = 3, .dim = 256, .ff = 256};
  tiny.n_experts = 6, tiny.expert_ff = 256;
  const std::string folder = fixtures::TemporaryFolder();
  TinyRunner network(fixtures::WriteTinyModel(folder, tiny));
  tiny.weight_type = DType::kQ4_K;
  tiny.scales = tensor::Scales::kClosest;
  tiny.weight_types = {{"output", DType::kQ8_0}, {"token_embd", DType::kF32}};
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
    tiny.weight_types[name] = DType::kQ3_K;
  TinyRunner same(fixtures::WriteTinyModel(folder, tiny));
  const CopyTypes parts = {.layers = DType::kQ6_K,
                           .output = DType::kQ8_0,
                           .attention = DType::kQ4_K,
                           .experts = DType::kQ3_K};
  CopyTypes ends = parts;
  ends.ends = DType::kQ8_0;
  const auto copy = network.Copy(parts), with_ends = network.Copy(ends);
  kv::BlockTables a(network.shape), b(same.shape);
  const int n = static_cast<int>(kCopyText.size());
  EXPECT_EQ(CopyLogits(*copy, a, 0, n, 0), CopyLogits(*same.runner, b, 0, n, 0));
  EXPECT_NE(CopyLogits(*copy, a, 0, n, 0), CopyLogits(*with_ends, a, 0, n, 0));
  EXPECT_LT(copy->info().weight_bytes, with_ends->info().weight_bytes);
}

// Where no type takes less, the copy's tiles are the network's own.
TEST(Copy, HasTheNetworksOwnMatricesWhereTheyAreSmall) {
  const std::string folder = fixtures::TemporaryFolder();
  TinyRunner network(fixtures::WriteTinyModel(folder, {.seed = 92, .weight_type = DType::kQ4_0}));
  const auto copy = network.Copy({DType::kQ4_K, DType::kQ4_K});
  EXPECT_EQ(copy->info().weight_bytes, 0);
  kv::BlockTables tables(network.shape);
  const int n = static_cast<int>(kCopyText.size());
  EXPECT_EQ(CopyLogits(*copy, tables, 0, n, 0), CopyLogits(*network.runner, tables, 0, n, 0));
}

// Passes of the copy leave nothing in the cache and the states that a pass of the network sees.
TEST(Copy, LeavesNothingThatTheNetworkSees) {
  for (const char* arch : {"llama", "gemma3", "lfm2", "qwen35", "nemotron_h", "falcon-h1"}) {
    fixtures::TinyModelOptions tiny{.arch = arch, .seed = 93, .n_layers = 4};
    if (std::string_view(arch) == "gemma3") tiny.window = 5, tiny.head_dim = 32;
    const std::string folder = fixtures::TemporaryFolder(),
                      path = fixtures::WriteTinyModel(folder, tiny);
    TinyRunner plain(path), drafted(path);
    const auto copy = drafted.Copy({DType::kQ4_0, DType::kQ4_0});
    kv::BlockTables a(plain.shape), b(drafted.shape);
    CopyLogits(*plain.runner, a, 0, 4, 4), CopyLogits(*drafted.runner, b, 0, 4, 4);
    const int n = static_cast<int>(kCopyText.size());
    for (int at = 4; at < n; ++at) {
      const auto drafts = CopyLogits(*copy, b, at, std::min(n, at + 5), 0);
      const auto one = CopyLogits(*plain.runner, a, at, at + 1, 1),
                 other = CopyLogits(*drafted.runner, b, at, at + 1, 1);
      EXPECT_EQ(one, other) << arch << " position " << at;
      EXPECT_NE(std::vector(drafts.begin(), drafts.begin() + std::ssize(one)), one) << arch;
    }
  }
}

// A kept copy is used again, and one that was changed is not.
TEST(Copy, IsKept) {
  const std::string folder = fixtures::TemporaryFolder();
  TinyRunner network(fixtures::WriteTinyModel(folder, {.seed = 94}));
  const TileCache cache = TileCache(folder + "/kept").ForCopy("Q4_0.Q4_0");
  std::vector<std::string> steps;
  const LoadOptions load = {.cache = &cache, .on_progress = [&](const LoadStep& step) {
                              if (steps.empty() || steps.back() != step.name)
                                steps.emplace_back(step.name);
                              return true;
                            }};
  const CopyTypes types = {DType::kQ4_0, DType::kQ4_0};
  const auto made = network.Copy(types, load);
  EXPECT_EQ(steps, std::vector<std::string>{"repacking"});
  steps.clear();
  const auto kept = network.Copy(types, load);
  EXPECT_EQ(steps, std::vector<std::string>{"reading kept weights"});
  kv::BlockTables tables(network.shape);
  EXPECT_EQ(CopyLogits(*made, tables, 0, 5, 0), CopyLogits(*kept, tables, 0, 5, 0));
  steps.clear();
  network.Copy({DType::kQ4_0, DType::kQ8_0}, load);  // another copy under its name
  EXPECT_EQ(steps.back(), "repacking");
  network.Copy({.layers = DType::kQ4_0, .output = DType::kQ4_0, .attention = DType::kQ5_0}, load);
  EXPECT_EQ(steps.back(), "repacking");
}

// Where a copy is made beside an engine at work, its threads wait for others from then on.
TEST(Copy, SaysThatItIsMadeBeforeTheFirstMatrix) {
  TinyRunner network(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 97}));
  std::vector<LoadStep> steps;
  network.Copy({DType::kQ4_0, DType::kQ4_0}, {.on_progress = [&](const LoadStep& step) {
                 steps.push_back(step);
                 return true;
               }});
  ASSERT_GE(steps.size(), 3u);
  EXPECT_TRUE(steps.front().makes);
  EXPECT_EQ(steps.front().done_bytes, 0u);
  EXPECT_GT(steps[1].done_bytes, 0u);
  EXPECT_EQ(steps.back().done_bytes, steps.front().total_bytes);
}

TEST(Copy, StopsInTheMiddleOfAMatrix) {
  TinyRunner network(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 96}));
  const std::atomic<bool> stop = true;
  int matrices = 0;
  const auto stopped =
      LocalRunner::LoadCopy(*network.file, network.options, {DType::kQ4_0, DType::kQ4_0},
                            network.kernels, {network.pool, network.pool}, *network.runner,
                            {.on_progress =
                                 [&](const LoadStep& step) {
                                   matrices += step.done_bytes > 0;
                                   return true;
                                 },
                             .stop = &stop});
  EXPECT_TRUE(Fails(stopped, ErrorCode::kStopped));
  EXPECT_EQ(matrices, 0);
}

// What was made when an engine ended is not made again: a byte that was changed in it, with the
// checksum, is in the copy of the next start.
TEST(Copy, GoesOnWhereItsMakingWasStopped) {
  const std::string folder = fixtures::TemporaryFolder();
  TinyRunner network(fixtures::WriteTinyModel(folder, {.seed = 95, .dim = 1024, .ff = 2048}));
  const TileCache cache = TileCache(folder + "/kept").ForCopy("Q4_0.Q4_0");
  const CopyTypes types = {DType::kQ4_0, DType::kQ4_0};
  constexpr std::size_t kEnough = 5 << 20;  // more than a piece of the checksum
  const auto stopped = LocalRunner::LoadCopy(
      *network.file, network.options, types, network.kernels, {network.pool, network.pool},
      *network.runner,
      {.cache = &cache, .on_progress = [&](auto& step) { return step.done_bytes < kEnough; }});
  EXPECT_TRUE(Fails(stopped, ErrorCode::kStopped));

  const std::string file = std::filesystem::directory_iterator(folder + "/kept")->path().string();
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    std::vector<char> content(std::filesystem::file_size(file));
    stream.read(content.data(), static_cast<std::streamsize>(content.size()));
    content[kTileHeaderBytes + 12345] ^= 1;
    TileHeader header;
    std::memcpy(&header, content.data(), sizeof header);
    PieceHasher hasher(header.tile_bytes);
    hasher.Advance(reinterpret_cast<const std::byte*>(content.data()) + kTileHeaderBytes,
                   header.source_hash, network.pool);
    header =
        UnfinishedHeaderOf(header.key, header.tile_bytes, hasher.hash_so_far(), header.source_hash);
    std::memcpy(content.data(), &header, sizeof header);
    stream.seekp(0);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  const auto first = network.Copy(types), second = network.Copy(types, {.cache = &cache});
  const std::span a(first->weights().tiles().data(), first->weights().tiles().size_bytes()),
      b(second->weights().tiles().data(), second->weights().tiles().size_bytes());
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(a[i], i == 12345 ? b[i] ^ std::byte{1} : b[i]) << i;
  EXPECT_EQ(second->weights().tiles().path(), file);
}

}  // namespace
}  // namespace foretoken::model
