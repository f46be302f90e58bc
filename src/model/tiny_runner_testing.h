// SPDX-License-Identifier: Apache-2.0
// model/tiny_runner_testing.h: the network of a small file, and texts of one sequence that it reads.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/failure_testing.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::model {

struct TinyRunner {
  // A text has up to so many positions, and a pass up to so many rows, of which all have logits.
  explicit TinyRunner(const std::string& path, int positions = 64, int rows = 16,
                      const kernels::Kernels& table = kernels::KernelsFor(kernels::Isa::kScalar),
                      const CacheOptions& cache = {})
      : kernels(table),
        file(*formats::OpenCheckpoint(path)),
        config(*ConfigFromMetadata(file->metadata())) {
    config.vocabulary = *VocabularyRows(*file);
    bool recurrent = false;
    for (const LayerConfig& layer : config.layers) recurrent |= layer.recurrent();
    shape = {.n_sequences = 1,
             .max_positions = positions,
             .pass_rows = rows,
             .state_rows = recurrent ? kv::TablesShape::kRollback : 0};
    options = {.max_rows = rows,
               .max_logit_rows = rows,
               .max_positions = positions,
               .cache = cache,
               .state = {.n_sequences = 1, .rows = shape.state_rows}};
    options.cache.n_blocks = shape.n_blocks();
    runner = *LocalRunner::Load(*file, config, options, kernels, pool, {});
  }

  std::unique_ptr<LocalRunner> Copy(const CopyTypes& types, const LoadOptions& load = {}) {
    return Got(LocalRunner::LoadCopy(*file, options, types, kernels, {pool, pool}, *runner, load));
  }

  const kernels::Kernels& kernels;
  ThreadPool pool{1};
  std::unique_ptr<formats::Checkpoint> file;
  ModelConfig config;
  kv::TablesShape shape;
  RunnerOptions options;
  std::unique_ptr<LocalRunner> runner;
};

// The logits of a text's tokens [begin, end), behind those that the tables hold; `kept` of them
// stay.
inline std::vector<float> LogitsOf(Runner& runner, kv::BlockTables& tables,
                                   std::span<const Token> text, int begin, int end, int kept,
                                   int window = 0, int best_blocks = 0) {
  const int n = end - begin;
  kv::Segment segment{.n_rows = n, .first_position = begin, .n_certain = kept};
  kv::Transaction transaction(tables, {&segment, 1});
  std::vector<int> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  const PassResult& result = runner.Run(
      {.tokens = text.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n)),
       .segments = {&segment, 1},
       .logit_rows = rows,
       .window = window,
       .best_blocks = best_blocks});
  std::vector<float> logits;
  for (int i = 0; i < n; ++i)
    logits.insert(logits.end(), result.Logits(i), result.Logits(i) + runner.info().vocabulary);
  transaction.Commit({&kept, 1});
  return logits;
}

}  // namespace foretoken::model
