// SPDX-License-Identifier: Apache-2.0
// loader/model_part.h: a model while it is being opened: its configuration, and the sizes of its
// cache and its passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "kv/block_tables.h"
#include "model/local_runner.h"
#include "model/weights/tile_cache.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::loader {

struct ModelPart {
  model::ModelConfig config;
  model::RunnerOptions options;
  kv::TablesShape tables;
  std::int64_t reduced_output_bytes = 0;  // of a head that has one
  // Set if this is a copy of the target with fewer bits: the types of its tiles, and their size.
  std::optional<model::CopyTypes> copy = {};
  model::CopySize copy_size = {};
  bool late = false;  // a copy that is made while the engine works
};

// Reads the configuration. The caller sets the sizes. Errors: those of the file.
[[nodiscard]] Result<ModelPart> DescribeModel(const formats::Checkpoint& checkpoint,
                                              const text::Tokenizer& tokenizer);

struct PartSizes {
  int positions = 0;  // in one text
  int sequences = 1;
  int cache_positions = 0;       // in all texts together; 0: as many as they can have
  int rows = 0, logit_rows = 0;  // in one pass
  int checkpoint_tokens = 0;     // EngineOptions.state_checkpoint_tokens; 0: no checkpoints
  bool all_positions = false;    // also in layers that see a window
  bool key_bounds = false;       // rows may choose the blocks that they see (model/pass.h)
  CacheType k = CacheType::kF16, v = CacheType::kF16;
};
// The sizes of every model of an engine, but for the logit rows and the positions in all texts together.
PartSizes SizesOf(const EngineOptions& options);
void SetSizes(ModelPart& part, const PartSizes& sizes);

// The cache for tiles of these weights, as EngineOptions.repack_cache and repack_cache_gb say.
// needed: also for a small model.
model::TileCache TileCacheFor(const std::string& repack_cache, int repack_cache_gb,
                              const formats::Checkpoint& checkpoint, bool needed);
// Whether it may keep tiles at all.
bool KeepsTiles(const std::string& repack_cache);

void Summarise(const ModelPart& part, const formats::Checkpoint& checkpoint,
               std::int64_t weight_bytes, int vocabulary, ModelSummary& out);

}  // namespace foretoken::loader
