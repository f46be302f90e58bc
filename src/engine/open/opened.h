// SPDX-License-Identifier: Apache-2.0
// engine/open/opened.h: what an engine was opened with, and what was made of its files.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/runner.h"
#include "tensor/block_layout.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

// Members are destroyed from the last to the first: what others point to comes first.
struct Opened {
  EngineOptions options;
  EngineSummary summary;
  std::unique_ptr<formats::Checkpoint> checkpoint;  // the target's
  std::vector<std::unique_ptr<formats::Checkpoint>> draft_checkpoints;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<ThreadPool> pool;
  const kernels::Kernels* kernels = nullptr;
  std::unique_ptr<model::Runner> target;
  std::optional<kv::BlockTables> cache;
  int vocabulary = 0;
  int context = 0;                // positions of a text
  std::vector<Token> end_tokens;  // of the model, or of the options

  // That one text can have: its context, or all of a smaller cache.
  int MostPositions() const noexcept {
    return std::min(context, cache->n_blocks() * tensor::kKvBlock);
  }
};

}  // namespace foretoken::engine
