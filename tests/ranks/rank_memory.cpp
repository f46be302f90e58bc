// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_memory.cpp: whether each rank has its part of the weights and of the cache alone,
// by what the network says and by what the system counts. Started by mpirun.
//
// usage: rank_memory FOLDER [FILE...]
// Without files, rank 0 writes models of about 50 MB into FOLDER. Prints a table. Exit code 1: a rank
// has more than 1.1 of its part.
#include <fstream>

#include "fixtures/tiny_model.h"
#include "model/ranks/speeds.h"
#include "ranks/rank_testing.h"

namespace foretoken {
namespace {

constexpr int kPositions = 512, kRows = 32;
constexpr double kMiB = 1 << 20;
constexpr double kMost = 1.1;             // of a rank's part
constexpr double kSlackBytes = 2 * kMiB;  // of what the process keeps beside the network

// Bytes in memory that belong to no file, or to files.
double Resident(const std::string& kind) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == kind + ":") {
      double kib = 0;
      status >> kib;
      return kib * 1024;
    }
  return 0;
}

// Architectures whose parts are divided in different ways.
std::vector<fixtures::TinyModelOptions> Models() {
  const std::string all =
      "Q8_0 n_layers=4 dim=1024 ff=2816 n_heads=16 n_kv_heads=4 vocab=8192 context_length=512 ";
  const std::string experts = "n_experts=16 n_used=4 expert_ff=256 ";
  std::vector<fixtures::TinyModelOptions> models;
  for (const std::string& own :
       {std::string("llama"), "qwen3moe " + experts,
        std::string("gemma4 n_layers=6 shared_caches=2 layer_input=64 head_dim=64 window=64"),
        "deepseek2 n_kv_heads=1 head_dim=192 rope_dimensions=64 q_rank=192 latent_rank=64 "
        "value_dim=128 shared_ff=256 n_dense=1 " +
            experts,
        std::string("olmo2 n_kv_heads=16")})
    models.push_back(fixtures::TinyOptions(all + own));
  return models;
}

struct Opened {
  std::unique_ptr<model::LocalRunner> runner;
  double cache_bytes, scratch_bytes;
};

Opened Open(const formats::Checkpoint& file, comm::Ranks& ranks, ThreadPool& pool) {
  const model::ModelConfig config = ConfigOf(file);
  model::RunnerOptions options;
  options.max_rows = kRows, options.max_logit_rows = 1, options.max_positions = kPositions;
  options.cache.n_blocks = kPositions / tensor::kKvBlock;
  options.ranks = &ranks;
  options.division = model::Division(ranks.rank(), Shares(ranks.size()));
  const auto cache = static_cast<double>(model::CacheBytes(config, options)),
             scratch = static_cast<double>(model::ScratchBytes(config, options, pool.size()));
  return {Checked(model::LocalRunner::Load(file, config, options, Kernels(), pool, {})), cache,
          scratch};
}

// Fills the cache.
void Run(model::Runner& runner) {
  std::vector<Token> tokens(kRows);
  std::vector<std::int32_t> blocks(kPositions / tensor::kKvBlock);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int32_t>(i);
  const std::vector<int> logit_rows = {kRows - 1};
  for (int first = 0; first < kPositions; first += kRows) {
    for (int i = 0; i < kRows; ++i)
      tokens[static_cast<std::size_t>(i)] = 3 + (first + i) * 37 % 290;
    const kv::Segment segment = {
        .n_rows = kRows, .first_position = first, .blocks = blocks, .window_blocks = blocks};
    runner.Run({.tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows});
  }
}

// Every rank runs the same passes by itself; no rank leads.
void Measure(const std::string& path, comm::Ranks& ranks) {
  ThreadPool pool(1);
  const auto file = Checked(formats::OpenCheckpoint(path));
  const double all = static_cast<double>(model::WeightBytesOf(*file).tiles()),
               before = Resident("RssAnon"), file_before = Resident("RssFile");
  const Opened opened = Open(*file, ranks, pool);
  Run(*opened.runner);
  const double part = all / ranks.size(),
               weights = static_cast<double>(opened.runner->info().weight_bytes),
               resident = Resident("RssAnon") - before,
               in_files = Resident("RssFile") - file_before;
  const std::string name = path.substr(path.rfind('/') + 1);
  std::printf(
      "%-28s rank %d of %d: weights %7.2f MiB, %5.3f of its part; cache %6.2f; resident %7.2f, of "
      "files %5.2f\n",
      name.c_str(), ranks.rank(), ranks.size(), weights / kMiB, weights / part,
      opened.cache_bytes / kMiB, resident / kMiB, in_files / kMiB);
  Check(weights <= kMost * part, name + ": too many weights");
  Check(resident <= kMost * part + opened.cache_bytes + opened.scratch_bytes + kSlackBytes,
        name + ": too much memory");
}

int Main(int argc, char** argv) {
  const auto ranks = Checked(comm::JoinMpi({}));
  std::vector<std::string> files(argv + 2, argv + argc);
  const std::size_t n = files.empty() ? Models().size() : files.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::string path = i < files.size() ? files[i] : "";
    if (files.empty() && ranks->leads()) path = fixtures::WriteTinyModel(argv[1], Models()[i]);
    path.resize(1024);
    Check(ranks->Broadcast(std::as_writable_bytes(std::span(path))), ranks->why());
    Measure(path.c_str(), *ranks);
    if (files.empty() && ranks->leads()) std::remove(path.c_str());
  }
  ThreadPool pool(1);
  const auto speeds = Checked(model::MeasureSpeeds(*ranks, Kernels(), pool));
  if (!ranks->leads() || ranks->alone()) return 0;
  for (const double speed : speeds.bytes_per_second) std::printf("%.2f GB/s  ", speed / 1e9);
  std::printf("gather %.1f us\n", speeds.gather_us);
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  return argc < 2 ? 2 : foretoken::Main(argc, argv);
}
