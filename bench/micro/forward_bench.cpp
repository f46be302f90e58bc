// SPDX-License-Identifier: Apache-2.0
// What a pass of a real model costs by its number of rows, beside the machine's memory bandwidth,
// in one process.
//
//   forward_bench MODEL.gguf [--threads N] [--repeats N] [--rows 1,2,4,8,16,512] [--json]
//
// Every row of a pass up to 64 has logits, as in verification; longer passes (prefill) have logits
// for the last row only. Each repeat goes through all row counts, with a bandwidth measurement each
// time, so that a slow moment of the machine affects all alike.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
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
  kv::BlockTables tables({.max_positions = most});
  auto runner = model::LocalRunner::Load(**checkpoint, *config,
                                         {.max_rows = most,
                                          .max_logit_rows = 64,
                                          .max_positions = most,
                                          .cache = {.n_blocks = tables.n_blocks()}},
                                         **kernels, pool, {});
  if (!runner) return Fail(runner.error().message);

  const double weights_gb = static_cast<double>((*runner)->info().weight_bytes) / 1e9;
  Bandwidth bandwidth(pool, **kernels);
  std::vector<double> readings;
  std::vector<std::vector<double>> times(a.rows.size());
  for (int repeat = -1; repeat < a.repeats; ++repeat) {  // -1 warms up
    const double reading = bandwidth.GigabytesPerSecond();
    if (repeat >= 0) readings.push_back(reading);
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
      const int rows = a.rows[i];
      if (rows > 64 && repeat >= 3) continue;
      const std::vector<Token> tokens(static_cast<std::size_t>(rows), 5);
      std::vector<int> logit_rows;
      for (int row = rows > 64 ? rows - 1 : 0; row < rows; ++row) logit_rows.push_back(row);
      kv::Segment segment{.n_rows = rows};
      kv::Transaction transaction(tables, {&segment, 1});
      const auto pass = [&] {
        (*runner)->Run({.tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows});
      };
      if (weights_gb < 0.1)
        pass();  // a model that lives in the caches is timed there: the bandwidth reading emptied
                 // them
      const double ms = Milliseconds(pass);
      if (repeat >= 0) times[i].push_back(ms);
    }
  }
  const Spread memory = SpreadOf(readings);
  const double one = SpreadOf(times[0]).median;
  if (a.json) {
    std::string passes;
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
      const Spread t = SpreadOf(times[i]);
      passes += fmt::format("{}\"{}\": {{\"ms\": {:.4f}, \"min\": {:.4f}, \"max\": {:.4f}}}",
                            i ? ", " : "", a.rows[i], t.median, t.least, t.most);
    }
    fmt::print(
        "{{\"isa\": \"{}\", \"threads\": {}, \"weights_gb\": {:.4f}, \"memory_gb_per_s\": {:.2f}, "
        "\"passes\": {{{}}}}}\n",
        (*kernels)->isa, a.threads, weights_gb, memory.median, passes);
    return 0;
  }
  fmt::print("{}: {:.3f} GB of weights, {}, {} threads, memory {:.1f} GB/s ({:.1f} to {:.1f})\n",
             a.model, weights_gb, (*kernels)->isa, a.threads, memory.median, memory.least,
             memory.most);
  fmt::print("{:>6} {:>10} {:>10} {:>10} {:>9} {:>8} {:>10}\n", "rows", "ms", "min", "max", "x 1st",
             "GB/s", "of memory");
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const Spread t = SpreadOf(times[i]);
    fmt::print("{:>6} {:>10.3f} {:>10.3f} {:>10.3f} {:>9.2f} {:>8.1f} {:>9.0f}%\n", a.rows[i],
               t.median, t.least, t.most, t.median / one, weights_gb / t.median * 1e3,
               weights_gb / t.median * 1e5 / memory.median);
  }
  return 0;
}
