// SPDX-License-Identifier: Apache-2.0
// calibrate/subject.h: the parts of an engine that are measured while no request runs.
#pragma once

#include <algorithm>

#include "base/machine/thread_pool.h"
#include "base/stopwatch.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/runner.h"

namespace foretoken::calibrate {

struct Subject {
  ThreadPool& pool;
  const kernels::Kernels& kernels;
  model::Runner& target;
  kv::BlockTables& cache;
  int vocabulary = 0;
  int context = 0;         // positions in a text
  int most_positions = 0;  // that one text can have in the cache
  int n_sequences = 1;
  int drafts = 0;  // the most in one round
  MicrosecondClock now = NowMicroseconds;

  // The most rows of a pass in which all rows have logits.
  int MaxRows() const {
    const model::RunnerInfo& info = target.info();
    return std::min(info.max_rows, info.max_logit_rows);
  }
};

}  // namespace foretoken::calibrate
