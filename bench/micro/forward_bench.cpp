// SPDX-License-Identifier: Apache-2.0
// What a pass of a real model costs by its number of rows, beside the machine's memory bandwidth,
// in one process.
//
//   forward_bench MODEL.gguf [--threads N] [--repeats N] [--rows 1,2,4,8,16,512] [--json]
//
// Every row of a pass up to 64 has logits, as in verification; longer passes (prefill) have logits
// for the last row only. Each pass has new random tokens, so that a mixture of experts reads as
// many experts as in a text. Each repeat goes through all row counts, with a bandwidth measurement
// each time, so that a slow moment of the machine affects all alike.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/machine/thread_pool.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace {

using namespace foretoken;

double Milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Spread {
  double median, least, most;
};
Spread SpreadOf(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return {x[x.size() / 2], x.front(), x.back()};
}

// Reads a buffer of 512 MiB once with all threads, by the vectorised maximum of the kernels.
class Bandwidth {
 public:
  Bandwidth(ThreadPool& pool, const kernels::Kernels& kernels)
      : pool_(pool), kernels_(kernels), data_(std::size_t{128} << 20) {
    pool_.Run([&](int thread) {
      const auto part = pool_.ShareOf(static_cast<int>(data_.size()), thread);
      std::fill(data_.data() + part.begin, data_.data() + part.end, 1.0f);
    });
  }
  double GigabytesPerSecond() {
    const double ms = Milliseconds([&] {
      pool_.Run([&](int thread) {
        const auto part = pool_.ShareOf(static_cast<int>(data_.size()), thread, 64);
        const float most = kernels_.max(data_.data() + part.begin, part.end - part.begin);
        if (thread == 0) sink_ = most;
      });
    });
    return static_cast<double>(data_.size() * sizeof(float)) / ms / 1e6;
  }

 private:
  ThreadPool& pool_;
  const kernels::Kernels& kernels_;
  AlignedBuffer<float> data_;
  static inline volatile float sink_ = 0;
};

struct Arguments {
  std::string model;
  int threads = 2, repeats = 9;
  std::vector<int> rows = {1, 2, 4, 8, 16, 512};
  bool json = false;
};

bool Parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--json")
      a.json = true;
    else if (flag == "--threads" && has_value)
      a.threads = std::max(1, std::atoi(argv[++i]));
    else if (flag == "--repeats" && has_value)
      a.repeats = std::max(1, std::atoi(argv[++i]));
    else if (flag == "--rows" && has_value) {
      a.rows.clear();
      for (char* p = argv[++i]; *p != '\0'; p += *p == ',')
        a.rows.push_back(std::clamp(static_cast<int>(std::strtol(p, &p, 10)), 1, 1024));
    } else if (a.model.empty() && flag[0] != '-')
      a.model = flag;
    else
      return false;
  }
  return !a.model.empty();
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "forward_bench: %s\n", message.c_str());
  return 1;
}

double Mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

// The passes of one row count.
struct Point {
  int rows;
  std::vector<double> ms, read_gb, distinct_experts;  // distinct experts of a layer
};

constexpr int kMostLogitRows = 64;

class Passes {
 public:
  Passes(model::Runner& runner, kv::BlockTables& tables) : runner_(runner), tables_(tables) {}

  // Runs one pass, with its time noted where the point wants it.
  void Run(Point& point, bool notes) {
    const int rows = point.rows;
    Draw(rows);
    std::vector<int> logit_rows;
    for (int row = rows > kMostLogitRows ? rows - 1 : 0; row < rows; ++row)
      logit_rows.push_back(row);
    // Few rows are those of decoding, where all but the first are drafts; many are those of prefill.
    kv::Segment segment{.n_rows = rows, .n_certain = rows > kMostLogitRows ? rows : 1};
    kv::Transaction transaction(tables_, {&segment, 1});
    std::int64_t distinct = 0;
    const auto pass = [&] {
      const model::PassResult& result =
          runner_.Run({.tokens = tokens_, .segments = {&segment, 1}, .logit_rows = logit_rows});
      distinct = result.distinct_experts;
    };
    // A model that lives in the caches is timed there. The bandwidth reading emptied them, and one pass
    // does not fill them: with one, the first of the row counts took 1.4 times as long (Zen 4).
    if (runner_.info().weight_bytes < kCachedBytes)
      for (int i = 0; i < kFillingPasses; ++i) pass();
    const double ms = Milliseconds(pass);
    if (!notes) return;
    const model::ExpertsInfo& experts = runner_.info().experts;
    point.ms.push_back(ms);
    point.read_gb.push_back(static_cast<double>(runner_.info().ReadBytes(distinct)) / 1e9);
    point.distinct_experts.push_back(static_cast<double>(distinct) / std::max(1, experts.n_layers));
  }

 private:
  static constexpr std::int64_t kCachedBytes = 100'000'000;
  static constexpr int kFillingPasses = 8;

  void Draw(int rows) {
    std::uniform_int_distribution<Token> token(0, runner_.info().readable - 1);
    tokens_.clear();
    for (int row = 0; row < rows; ++row) tokens_.push_back(token(random_));
  }

  model::Runner& runner_;
  kv::BlockTables& tables_;
  std::mt19937 random_{5};
  std::vector<Token> tokens_;
};

struct Figures {
  std::string isa;
  double weights_gb;
  bool has_experts;
  std::vector<double> memory_gb_per_s;
  std::vector<Point> points;
};

void PrintJson(const Arguments& a, const Figures& f) {
  std::string passes;
  for (const Point& point : f.points) {
    const Spread t = SpreadOf(point.ms);
    passes += fmt::format(
        "{}\"{}\": {{\"ms\": {:.4f}, \"min\": {:.4f}, \"max\": {:.4f}, \"read_gb\": {:.4f}",
        passes.empty() ? "" : ", ", point.rows, t.median, t.least, t.most, Mean(point.read_gb));
    if (f.has_experts)
      passes += fmt::format(", \"distinct_experts\": {:.1f}", Mean(point.distinct_experts));
    passes += "}";
  }
  fmt::print(
      "{{\"isa\": \"{}\", \"threads\": {}, \"weights_gb\": {:.4f}, \"memory_gb_per_s\": {:.2f}, "
      "\"passes\": {{{}}}}}\n",
      f.isa, a.threads, f.weights_gb, SpreadOf(f.memory_gb_per_s).median, passes);
}

void PrintTable(const Arguments& a, const Figures& f) {
  const Spread memory = SpreadOf(f.memory_gb_per_s);
  const double one = SpreadOf(f.points.front().ms).median;
  fmt::print("{}: {:.3f} GB of weights, {}, {} threads, memory {:.1f} GB/s ({:.1f} to {:.1f})\n",
             a.model, f.weights_gb, f.isa, a.threads, memory.median, memory.least, memory.most);
  fmt::print("{:>6} {:>10} {:>10} {:>10} {:>9} {:>8} {:>8} {:>10}{}\n", "rows", "ms", "min", "max",
             "x 1st", "GB", "GB/s", "of memory", f.has_experts ? "    experts" : "");
  for (const Point& point : f.points) {
    const Spread t = SpreadOf(point.ms);
    const double read = Mean(point.read_gb), speed = read / t.median * 1e3;
    fmt::print("{:>6} {:>10.3f} {:>10.3f} {:>10.3f} {:>9.2f} {:>8.3f} {:>8.1f} {:>9.0f}%{}\n",
               point.rows, t.median, t.least, t.most, t.median / one, read, speed,
               100 * speed / memory.median,
               f.has_experts ? fmt::format(" {:>10.1f}", Mean(point.distinct_experts)) : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!Parse(argc, argv, a))
    return Fail(
               "usage: forward_bench MODEL.gguf [--threads N] [--repeats N] [--rows "
               "1,2,4,8,16,512] [--json]"),
           2;
  auto checkpoint = formats::OpenCheckpoint(a.model);
  if (!checkpoint) return Fail(checkpoint.error().message);
  auto config = model::ConfigFromMetadata((*checkpoint)->metadata());
  if (!config) return Fail(config.error().message);
  const auto vocabulary = model::VocabularyRows(**checkpoint);
  if (!vocabulary) return Fail(vocabulary.error().message);
  config->vocabulary = *vocabulary;
  const auto kernels = kernels::KernelsFromEnvironment();
  if (!kernels) return Fail(kernels.error().message);
  ThreadPool pool(a.threads);
  const int most = *std::max_element(a.rows.begin(), a.rows.end());
  const bool recurrent =
      std::any_of(config->layers.begin(), config->layers.end(),
                  [](const model::LayerConfig& layer) { return layer.recurrent(); });
  const int state_rows = recurrent ? kv::TablesShape::kRollback : 0;
  kv::BlockTables tables({.max_positions = most, .state_rows = state_rows});
  auto runner = model::LocalRunner::Load(**checkpoint, *config,
                                         {.max_rows = most,
                                          .max_logit_rows = kMostLogitRows,
                                          .max_positions = most,
                                          .cache = {.n_blocks = tables.n_blocks()},
                                          .state = {.n_sequences = 1, .rows = state_rows}},
                                         **kernels, pool, {});
  if (!runner) return Fail(runner.error().message);

  const model::RunnerInfo& info = (*runner)->info();
  Figures figures{.isa = (*kernels)->isa,
                  .weights_gb = static_cast<double>(info.weight_bytes) / 1e9,
                  .has_experts = info.experts.n_layers > 0,
                  .memory_gb_per_s = {},
                  .points = {}};
  for (const int rows : a.rows) figures.points.push_back({rows, {}, {}, {}});
  Bandwidth bandwidth(pool, **kernels);
  Passes passes(**runner, tables);
  for (int repeat = -1; repeat < a.repeats; ++repeat) {  // -1 warms up
    const double reading = bandwidth.GigabytesPerSecond();
    if (repeat >= 0) figures.memory_gb_per_s.push_back(reading);
    for (Point& point : figures.points)
      if (point.rows <= kMostLogitRows || repeat < 3) passes.Run(point, repeat >= 0);
  }
  if (a.json)
    PrintJson(a, figures);
  else
    PrintTable(a, figures);
  return 0;
}
