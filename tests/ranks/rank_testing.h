// SPDX-License-Identifier: Apache-2.0
// ranks/rank_testing.h: for the programs that mpirun starts: checks that end them, models that all ranks
// open, and passes.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken {

inline void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "ranks: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Checked(Result<T> result) {
  Check(result.has_value(), result ? "" : result.error().message);
  return std::move(*result);
}

inline const kernels::Kernels& Kernels() {
  return *kernels::KernelsFromEnvironment().value();
}

// Shares of the ranks: all the same, but for the last one's.
inline std::vector<int> Shares(int n_ranks, int last = 1) {
  std::vector<int> shares(static_cast<std::size_t>(n_ranks), 1);
  shares.back() = last;
  return shares;
}

// The file that rank 0 has written, opened on each rank.
inline std::shared_ptr<formats::Checkpoint> Share(comm::Ranks& ranks, std::string path) {
  path.resize(1024);
  Check(ranks.Broadcast(std::as_writable_bytes(std::span(path))), ranks.why());
  return Checked(formats::OpenCheckpoint(path.c_str()));
}

inline model::ModelConfig ConfigOf(const formats::Checkpoint& file) {
  auto config = Checked(model::ConfigFromMetadata(file.metadata()));
  config.vocabulary = *model::VocabularyRows(file);
  return config;
}

inline bool Same(const float* a, const float* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

// A pass of n_rows rows from a position on, all with logits; `step` tells texts apart.
struct TestPass {
  std::vector<std::int32_t> blocks = {2, 0, 1};
  std::vector<Token> tokens;
  std::vector<int> logit_rows;
  kv::Segment segment;

  TestPass(int first, int n_rows, int step = 37) {
    for (int i = 0; i < n_rows; ++i) {
      tokens.push_back(3 + (first + i) * step % 290);
      logit_rows.push_back(i);
    }
    segment = {.row_begin = 0,
               .n_rows = n_rows,
               .first_position = first,
               .blocks = blocks,
               .window_blocks = blocks};
  }
  TestPass(const TestPass&) = delete;
  model::Pass View() const {
    return {.tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows};
  }
};

}  // namespace foretoken
