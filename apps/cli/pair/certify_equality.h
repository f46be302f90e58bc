// SPDX-License-Identifier: Apache-2.0
// cli/pair/certify_equality.h: compares speculation with plain decoding of the same engine, token
// by token and bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_prompts.h"
#include "foretoken/engine.h"
#include "foretoken/event_stream.h"

namespace foretoken::cli {

struct EqualityPlan {
  Request request;  // for every prompt, except text and id; at temperature 0 only greedy text runs
  std::vector<BenchPrompt> prompts;
  std::vector<int> ks, batches;
  std::function<void(int run, int runs)> on_run;  // from 1
};

// All prompts with one K and one batch size.
struct EqualityRow {
  std::string text;  // "greedy" or "sampled": at the request's temperature, with one seed
  int k = 0;         // 0: plain decoding in a batch, not alone
  int batch = 1;
  int prompts = 0, differing = 0;
  std::int64_t tokens = 0;  // tokens that were compared
  SpeculationStats stats;
};

// The first place where a text differs from that of plain decoding.
struct Difference {
  std::string text, origin;  // "greedy"; of the prompt
  int k = 0, batch = 1;
  std::string what;  // "token", "log-probability", "length"
  int position = 0;  // in the generated text, from 0
  // Absent if the text has already ended there.
  std::optional<std::int32_t> plain, speculative;
  float plain_logprob = 0, speculative_logprob = 0;
};

struct Equality {
  std::vector<EqualityRow> rows;
  DrafterCounts drafters;  // of all runs, by who drafted
  std::optional<Difference> first;
  // The strategy that verified the texts of temperature 0, and the sampled ones; empty: none were
  // compared.
  std::string greedy_strategy, strategy;
  // Why sampled texts were not compared; empty if they were.
  std::string sampled_left_out;
  std::int64_t drafted() const {
    std::int64_t n = 0;
    for (const EqualityRow& row : rows) n += row.stats.drafted;
    return n;
  }
};

// Compares token ids, and the log-probabilities of each token and of the best ones, as the bits of
// their floats. Continues after a difference. Errors: those of a prompt, with its origin.
[[nodiscard]] Result<Equality> CompareWithPlain(Engine& engine, const EqualityPlan& plan);

}  // namespace foretoken::cli
