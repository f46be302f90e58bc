// SPDX-License-Identifier: Apache-2.0
// engine/open/opened.h: the options of an engine, and what was made from its files.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/machine/thread_pool.h"
#include "calibrate/subject.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/runner.h"
#include "model/weights/rerank_head.h"
#include "tensor/block_layout.h"
#include "text/thinking_marks.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

// The order of the members matters: later ones point to earlier ones.
struct Opened {
  EngineOptions options;
  EngineSummary summary;
  std::unique_ptr<formats::Checkpoint> checkpoint;  // the target's
  std::vector<std::unique_ptr<formats::Checkpoint>> draft_checkpoints;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::ThinkingMarks>
      thinking;  // where relaxed acceptance verifies parts that think
  std::unique_ptr<ThreadPool> pool;
  const kernels::Kernels* kernels = nullptr;
  std::unique_ptr<model::Runner> target;
  std::unique_ptr<model::RerankHead> rerank_head;  // null: the target has none
  std::optional<kv::BlockStore> store;             // EngineOptions::cache_file; for slots, too
  std::optional<kv::BlockFile::Shape> slot_shape;  // of files of slots; none: there are no slots
  std::optional<kv::BlockTables> cache;
  int vocabulary = 0;
  int context = 0;                // positions of a text
  std::vector<Token> end_tokens;  // the model's, or the options'

  // The positions that one text can have: its context, or the whole cache where that is smaller.
  int MostPositions() const noexcept {
    return std::min(context, cache->n_blocks() * tensor::kKvBlock);
  }
};

// What calibrate/ measures.
inline calibrate::Subject SubjectOf(Opened& opened) {
  return {.pool = *opened.pool,
          .kernels = *opened.kernels,
          .target = *opened.target,
          .cache = *opened.cache,
          .vocabulary = opened.vocabulary,
          .context = opened.context,
          .most_positions = opened.MostPositions(),
          .n_sequences = opened.options.max_sequences,
          .drafts = *opened.options.speculative.num_speculative_tokens};
}

}  // namespace foretoken::engine
