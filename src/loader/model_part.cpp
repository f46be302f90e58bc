// SPDX-License-Identifier: Apache-2.0
#include "loader/model_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files/own_folder.h"
#include "foretoken/drafts.h"
#include "formats/weight_type.h"
#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"

namespace foretoken::loader {
namespace {

tensor::KvType KvTypeOf(CacheType type) {
  constexpr std::array kTypes = {tensor::KvType::kF32, tensor::KvType::kF16, tensor::KvType::kBF16,
                                 tensor::KvType::kQ8_0, tensor::KvType::kQ4_0};
  return kTypes[static_cast<std::size_t>(type)];
}

}  // namespace

Result<ModelPart> DescribeModel(const formats::Checkpoint& checkpoint,
                                const text::Tokenizer& tokenizer) {
  const model::DraftFile kind = model::DraftFileOf(checkpoint);
  if (!kind.model && kind.head->architecture.empty() &&
      checkpoint.Find("token_embd.weight") == nullptr && !checkpoint.tensors().empty())
    return Fail(ErrorCode::kMismatch,
                fmt::format("this is {}, no whole model; give it as the draft "
                            "(EngineOptions::draft_model) of the model it was trained for",
                            kind.Noun()));
  ModelPart part;
  FORETOKEN_TRY(part.config, model::ConfigFromMetadata(checkpoint.metadata()));
  FORETOKEN_TRY(part.config.vocabulary, model::VocabularyRows(checkpoint));
  if (tokenizer.vocabulary_size() > part.config.vocabulary)
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format(
            "tokenizer: it has {} tokens, the embedding only {} rows; the file is inconsistent",
            tokenizer.vocabulary_size(), part.config.vocabulary));
  return part;
}

PartSizes SizesOf(const EngineOptions& options) {
  return {.positions = options.context_size,
          .sequences = options.max_sequences,
          .rows = std::max(options.prefill_rows, options.max_sequences * (1 + kMaxDraft)),
          .checkpoint_tokens = options.prefix_cache ? options.state_checkpoint_tokens : 0,
          .all_positions = !options.cache_file.empty() || !options.slot_folder.empty(),
          .k = options.cache_type_k,
          .v = options.cache_type_v};
}

void SetSizes(ModelPart& part, const PartSizes& sizes) {
  int window = 0;
  bool recurrent = false;
  for (const model::LayerConfig& layer : part.config.layers) {
    if (!sizes.all_positions) window = std::max(window, layer.window());
    recurrent |= layer.recurrent();
  }
  part.tables = {.n_sequences = sizes.sequences,
                 .max_positions = sizes.positions,
                 .n_positions = sizes.cache_positions,
                 .window = window,
                 .pass_rows = sizes.rows,
                 .state_rows = recurrent ? kv::TablesShape::kRollback : 0};
  if (recurrent && sizes.checkpoint_tokens > 0) {
    // The end of the prompt and the newest block of each sequence, a few of texts that have ended, and
    // those that stay at intervals.
    part.tables.checkpoint_tokens = sizes.checkpoint_tokens;
    part.tables.n_checkpoints =
        2 * sizes.sequences + 4 + part.tables.n_blocks() / kv::BlocksFor(sizes.checkpoint_tokens);
  }
  part.options = {.max_rows = sizes.rows,
                  .max_logit_rows = sizes.logit_rows,
                  .max_positions = sizes.positions,
                  .cache = {.k_type = KvTypeOf(sizes.k),
                            .v_type = KvTypeOf(sizes.v),
                            .n_blocks = part.tables.n_blocks(),
                            .n_window_blocks = part.tables.n_window_blocks(),
                            .key_bounds = sizes.key_bounds},
                  .state = {.n_sequences = sizes.sequences,
                            .rows = part.tables.state_rows,
                            .n_checkpoints = part.tables.n_checkpoints}};
}

model::TileCache TileCacheFor(const std::string& repack_cache, int repack_cache_gb,
                              const formats::Checkpoint& checkpoint, bool needed) {
  if (repack_cache == "off") return {};
  const std::uint64_t limit = static_cast<std::uint64_t>(repack_cache_gb) * 1'000'000'000;
  if (repack_cache != "auto") return model::TileCache(repack_cache, limit);
  constexpr std::int64_t kWorthKeeping = 64'000'000;
  if (!needed && model::WeightBytesOf(checkpoint).tiles() < kWorthKeeping) return {};
  return model::TileCache(UserCacheFolder(), limit);
}

bool KeepsTiles(const std::string& repack_cache) {
  return repack_cache != "off" && (repack_cache != "auto" || !UserCacheFolder().empty());
}

void Summarise(const ModelPart& part, const formats::Checkpoint& checkpoint,
               std::int64_t weight_bytes, int vocabulary, ModelSummary& out) {
  out.path = checkpoint.path();
  if (const auto* name = checkpoint.metadata().String("general.name")) out.name = *name;
  out.architecture = part.config.architecture;
  out.type = WeightType(checkpoint);
  out.parameters = formats::ParameterCount(checkpoint);
  out.file_bytes = static_cast<std::int64_t>(checkpoint.file_bytes());
  out.weight_bytes = weight_bytes;
  out.cache_bytes = model::CacheBytes(part.config, part.options);
  out.vocabulary_size = vocabulary;
  out.context_length = part.config.context_length;
  out.embedding_size = part.config.dim;
  for (const model::LayerConfig& layer : part.config.layers)
    if (const model::ExpertsConfig* experts = layer.experts()) {
      ++out.expert_layers;
      out.experts = experts->n_experts, out.experts_used = experts->n_used;
    }
  out.context_size = part.tables.max_positions;
  if (!part.copy) return;
  out.type = NameOf(*part.copy);  // it has no file and no cache of its own
  out.file_bytes = out.cache_bytes = 0;
}

}  // namespace foretoken::loader
