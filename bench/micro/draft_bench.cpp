// SPDX-License-Identifier: Apache-2.0
// bench/micro/draft_bench.cpp: the cost of lookups: nanoseconds for each drafted and for each
// committed token, for the drafters that need no model, behind texts of 8,000 and 100,000 tokens.
//
// Names are propose or observe / drafter / length of the text. Texts repeat themselves like written
// ones: token frequencies of a Zipf distribution over 32,000 ids, and passages that occur again.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "draft/lookup/ngram.h"
#include "draft/lookup/suffix.h"

namespace foretoken::draft {
namespace {

constexpr int kVocabulary = 32000, kRounds = 512, kMaxDraft = 8;

std::vector<Token> Text(std::size_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Token> text;
  std::size_t from = 0, left = 0;
  while (text.size() < n) {
    if (left == 0 && uniform(random) < 0.05 && text.size() > 100) {
      from = random() % (text.size() - 50);
      left = 3 + random() % 30;
    }
    if (left > 0) {
      --left;
      text.push_back(text[from++]);
    } else {
      text.push_back(static_cast<Token>(std::pow(kVocabulary, uniform(random))) - 1);
    }
  }
  return text;
}

using Make = std::function<std::unique_ptr<Drafter>(int max_context)>;

// Rounds of up to 8 drafts and then one committed token; the time of one of the two is counted.
void Rounds(benchmark::State& state, const Make& make, bool propose) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const auto text = Text(n + kRounds);
  const auto drafter = make(static_cast<int>(text.size()) + kMaxDraft);
  std::int64_t tokens = 0;
  for (auto _ : state) {
    drafter->Begin({.prompt = std::span(text).first(n),
                    .max_new_tokens = kRounds,
                    .sampling = {},
                    .end_tokens = {},
                    .noise = {}});
    std::chrono::steady_clock::duration proposing{0}, observing{0};
    const std::int64_t before = tokens;
    for (std::size_t i = n; i < text.size(); ++i) {
      const Ask ask{0, kMaxDraft};
      round::Proposal proposal;
      const auto begin = std::chrono::steady_clock::now();
      drafter->Propose({&ask, 1}, {&proposal, 1});
      const auto proposed = std::chrono::steady_clock::now();
      const Observation observation{.committed = std::span(text).subspan(i, 1)};
      drafter->Observe({&observation, 1});
      observing += std::chrono::steady_clock::now() - proposed;
      proposing += proposed - begin;
      tokens += propose ? std::max(1, proposal.length()) : 1;  // an empty search takes time
    }
    drafter->End(0);
    const auto time = propose ? proposing : observing;
    state.SetIterationTime(std::chrono::duration<double>(time).count() /
                           static_cast<double>(tokens - before));
  }
}

void Register(const std::string& name, const Make& make) {
  for (const bool propose : {true, false})
    benchmark::RegisterBenchmark(((propose ? "propose/" : "observe/") + name).c_str(),
                                 [=](benchmark::State& state) { Rounds(state, make, propose); })
        ->Arg(8000)
        ->Arg(100000)
        ->UseManualTime()
        ->Iterations(8)
        ->Unit(benchmark::kNanosecond);
}

}  // namespace
}  // namespace foretoken::draft

int main(int argc, char** argv) {
  using namespace foretoken::draft;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Register("ngram", [](int max_context) {
    return std::make_unique<NgramDrafter>(NgramSettings{.max_context = max_context});
  });
  Register("ngram_keep", [](int max_context) {
    return std::make_unique<NgramDrafter>(NgramSettings{.max_context = max_context, .keep = true});
  });
  Register("suffix", [](int max_context) {
    return std::make_unique<SuffixDrafter>(SuffixSettings{.max_context = max_context});
  });
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
