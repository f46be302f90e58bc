// SPDX-License-Identifier: Apache-2.0
// engine/open/model_part.h: a model of an engine, or a drafter's, while it is being opened: what its
// file says, and the sizes of what is made for it.
#pragma once

#include <cstdint>
#include <string>

#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "kv/block_tables.h"
#include "model/local_runner.h"
#include "model/tile_cache.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

struct ModelPart {
  model::ModelConfig config;
  model::RunnerOptions options;
  kv::TablesShape tables;
};

// The configuration; sizes are for the caller to set. Errors: as the file's.
[[nodiscard]] Result<ModelPart> DescribeModel(const formats::Checkpoint& checkpoint,
                                              const text::Tokenizer& tokenizer);

struct PartSizes {
  int positions = 0;  // of a text
  int sequences = 1;
  int cache_positions = 0;       // of all texts together; 0: as many as they can have
  int rows = 0, logit_rows = 0;  // of a pass
  CacheType k = CacheType::kF16, v = CacheType::kF16;
};
void SetSizes(ModelPart& part, const PartSizes& sizes);

// Of its weights and its cache; scratch and logits are small beside these.
std::int64_t BytesOf(const ModelPart& part, const formats::Checkpoint& checkpoint);
// Errors: kTooLarge where the machine, a control group or a resource limit leaves less memory.
[[nodiscard]] Status CheckFits(std::int64_t bytes, int positions, int sequences);

// Where tiles of these weights are kept: EngineOptions.repack_cache.
model::TileCache TileCacheFor(const std::string& repack_cache,
                              const formats::Checkpoint& checkpoint);

void Summarise(const ModelPart& part, const formats::Checkpoint& checkpoint,
               std::int64_t weight_bytes, int vocabulary, ModelSummary& out);

}  // namespace foretoken::engine
