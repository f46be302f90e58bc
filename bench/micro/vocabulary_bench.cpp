// SPDX-License-Identifier: Apache-2.0
// bench/micro/vocabulary_bench.cpp: passes over one row of logits, on one thread: the parts of
// verification and drawing.
//
// Names are kernel or distribution / instruction set / vocabulary. Nine rows take turns, as after a
// pass with eight drafts.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/rng.h"
#include "kernels/dispatch.h"
#include "sampling/sampler.h"

namespace foretoken {
namespace {

constexpr int kRows = 9;

// Logits like a model's: normal, with a spread of 3.
class Logits {
 public:
  explicit Logits(int n)
      : n_(static_cast<std::size_t>(n)),
        rows_(kRows * n_),
        out_(n_),
        maxima_(n_ / 64 + 1),
        ids_(n_) {
    const Noise noise(1, 1);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      double sum = -6;
      for (std::uint32_t k = 0; k < 12; ++k)
        sum += noise.Uniform(Stream::kTarget, static_cast<Pos>(i), k);
      rows_[i] = static_cast<float>(3 * sum);
    }
  }
  const float* Next() {
    row_ = (row_ + 1) % kRows;
    return rows_.data() + row_ * n_;
  }
  int n() const { return static_cast<int>(n_); }
  float* out() { return out_.data(); }
  float* maxima() { return maxima_.data(); }
  std::int32_t* ids() { return ids_.data(); }

 private:
  std::size_t n_, row_ = 0;
  AlignedBuffer<float> rows_, out_, maxima_;
  std::vector<std::int32_t> ids_;
};

void Finish(benchmark::State& state, const Logits& logits) {
  state.SetBytesProcessed(state.iterations() * logits.n() *
                          static_cast<std::int64_t>(sizeof(float)));
}

using Pass = void (*)(const kernels::Kernels&, Logits&, const float*);

void Kernel(benchmark::State& state, kernels::Isa isa, Pass pass) {
  const kernels::Kernels& kernels = kernels::KernelsFor(isa);
  Logits logits(static_cast<int>(state.range(0)));
  for (auto _ : state) pass(kernels, logits, logits.Next());
  Finish(state, logits);
}

void ArgmaxPass(const kernels::Kernels& kernels, Logits& logits, const float* x) {
  benchmark::DoNotOptimize(kernels.argmax(x, logits.n()));
}
void MaxPass(const kernels::Kernels& kernels, Logits& logits, const float* x) {
  benchmark::DoNotOptimize(kernels.max(x, logits.n()));
}
void ExpSumPass(const kernels::Kernels& kernels, Logits& logits, const float* x) {
  benchmark::DoNotOptimize(kernels.exp_sum(x, logits.n(), 12.0F, 1.25F, logits.out()));
}
void BlockMaxPass(const kernels::Kernels& kernels, Logits& logits, const float* x) {
  kernels.block_max(x, logits.n(), logits.maxima());
  benchmark::DoNotOptimize(logits.maxima());
}
void CollectPass(const kernels::Kernels& kernels, Logits& logits, const float* x) {
  benchmark::DoNotOptimize(
      kernels.collect_at_least(x, logits.n(), 10.0F, logits.ids(), logits.n()));
}

// Draws a token from a finished distribution: by the race, or from its running sum.
class Distributions {
 public:
  Distributions(int n, const SamplingParameters& parameters, const kernels::Kernels& kernels)
      : n_(static_cast<std::size_t>(n)),
        distributions_(kRows * n_),
        sampler_({.parameters = parameters, .end_tokens = {}, .noise = Noise(1, 2)}, n, kernels) {
    const Token first = 0;
    sampler_.Begin({&first, 1}, 1 << 20);
    Logits logits(n);
    for (std::size_t row = 0; row < kRows; ++row)
      sampler_.Distribution(logits.Next(), distributions_.data() + row * n_);
  }
  const float* Next() {
    row_ = (row_ + 1) % kRows;
    if (sampler_.n_generated() == 1 << 20) sampler_.Pop(1 << 20);
    sampler_.Push(0);  // other noise
    return distributions_.data() + row_ * n_;
  }
  const sampling::Sampler& sampler() const { return sampler_; }

 private:
  std::size_t n_, row_ = 0;
  AlignedBuffer<float> distributions_;
  sampling::Sampler sampler_;
};

void Draw(benchmark::State& state, kernels::Isa isa, const SamplingParameters& parameters,
          bool race) {
  Distributions distributions(static_cast<int>(state.range(0)), parameters,
                              kernels::KernelsFor(isa));
  const Noise noise(1, 2);
  for (auto _ : state) {
    const float* p = distributions.Next();
    const sampling::Sampler& s = distributions.sampler();
    benchmark::DoNotOptimize(race ? s.Race(p)
                                  : s.Draw(p, noise.Uniform(Stream::kResidual, s.position())));
  }
}

// A whole distribution with these parameters: the cost of a sampled token before it is drawn.
void Distribution(benchmark::State& state, kernels::Isa isa, const SamplingParameters& parameters) {
  const kernels::Kernels& kernels = kernels::KernelsFor(isa);
  Logits logits(static_cast<int>(state.range(0)));
  sampling::Sampler sampler(
      {.parameters = parameters, .end_tokens = {}, .min_new_tokens = 0, .noise = {}}, logits.n(),
      kernels);
  const Token first = 0;
  sampler.Begin({&first, 1}, 1);
  for (auto _ : state) {
    sampler.Distribution(logits.Next(), logits.out());
    benchmark::DoNotOptimize(logits.out());
  }
  Finish(state, logits);
}

void Register(kernels::Isa isa) {
  const std::string end = "/" + std::string(kernels::Name(isa));
  const auto add = [&](const std::string& name, auto run) {
    benchmark::RegisterBenchmark((name + end).c_str(), run)
        ->Arg(4096)
        ->Arg(32000)
        ->Arg(128256)
        ->Unit(benchmark::kMicrosecond);
  };
  const auto add_kernel = [&](const char* name, Pass pass) {
    add(name, [isa, pass](benchmark::State& state) { Kernel(state, isa, pass); });
  };
  add_kernel("argmax", ArgmaxPass);
  add_kernel("max", MaxPass);
  add_kernel("exp_sum", ExpSumPass);
  add_kernel("block_max", BlockMaxPass);
  add_kernel("collect_at_least", CollectPass);
  const auto add_draw = [&](const char* name, const SamplingParameters& parameters, bool race) {
    const auto run = [isa, parameters, race](benchmark::State& state) {
      Draw(state, isa, parameters, race);
    };
    auto* const bench = benchmark::RegisterBenchmark((name + end).c_str(), run);
    for (const int n : {512, 4096, 32000, 128256}) bench->Arg(n);
    bench->Unit(benchmark::kNanosecond);
  };
  const SamplingParameters dense = {.temperature = 0.8F}, few = {.temperature = 0.8F, .top_k = 40};
  add_draw("race", dense, true);
  add_draw("race_of_40", few, true);
  add_draw("running_sum", dense, false);
  add_draw("running_sum_of_40", few, false);
  const auto add_distribution = [&](const char* name, const SamplingParameters& parameters) {
    add(name, [isa, parameters](benchmark::State& state) { Distribution(state, isa, parameters); });
  };
  add_distribution("distribution", {.temperature = 0.8F});
  add_distribution("distribution_top_k_40", {.temperature = 0.8F, .top_k = 40});
  add_distribution("distribution_top_p_95", {.temperature = 0.8F, .top_p = 0.95F});
  add_distribution("distribution_min_p_5", {.temperature = 0.8F, .min_p = 0.05F});
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto isas = foretoken::kernels::AvailableIsas();
  for (auto isa = isas.rbegin(); isa != isas.rend(); ++isa) foretoken::Register(*isa);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
