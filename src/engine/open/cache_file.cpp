// SPDX-License-Identifier: Apache-2.0
#include "engine/open/cache_file.h"

#include <fmt/format.h>

#include "foretoken/catalogue.h"

namespace foretoken::engine {
namespace {

std::int64_t BytesOf(const model::Runner::Parts& parts) {
  std::size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  return static_cast<std::int64_t>(bytes);
}

// All that the bits of a block depend on, beside its text. The context is among it where a model has
// other rotations for long ones.
kv::BlockKey MakersKey(const Opened& opened, const loader::ModelPart& target) {
  const bool by_context = opened.checkpoint->Find("rope_factors_long.weight") != nullptr;
  const std::string made_by =
      fmt::format("foretoken {} {} model {:016x} {} keys {} values {} context {}", kVersion,
                  opened.kernels->isa, opened.checkpoint->Fingerprint(),
                  opened.checkpoint->file_bytes(), static_cast<int>(target.options.cache.k_type),
                  static_cast<int>(target.options.cache.v_type), by_context ? opened.context : 0);
  return Sha256Of(std::as_bytes(std::span(made_by)));
}

}  // namespace

Result<kv::BlockFile::Shape> FileShape(const Opened& opened, const loader::ModelPart& target) {
  model::Runner::Parts block, state;
  opened.target->BlockParts(0, block);
  if (block.empty())
    return Fail(ErrorCode::kUnsupported,
                "several ranks share the cache's memory; leave EngineOptions::cache_file and "
                "slot_folder out");
  if (target.tables.n_checkpoints > 0) opened.target->StateParts(0, state);
  return kv::BlockFile::Shape{.made_by = MakersKey(opened, target),
                              .block_bytes = BytesOf(block),
                              .state_bytes = BytesOf(state),
                              .max_bytes = std::int64_t{opened.options.cache_file_mb} * 1'000'000};
}

kv::BlockStore StoreOver(kv::BlockFile file, const Opened& opened) {
  model::Runner& runner = *opened.target;
  model::Runner::Parts block, state;
  runner.BlockParts(0, block);
  if (opened.cache->checkpoints().n_places() > 0) runner.StateParts(0, state);
  return kv::BlockStore(
      std::move(file),
      {.of_block = [&runner](std::int32_t b, auto& parts) { runner.BlockParts(b, parts); },
       .of_state = [&runner](std::int32_t c, auto& parts) { runner.StateParts(c, parts); }},
      std::max(block.size(), state.size()));
}

Result<kv::BlockStore> OpenCacheFile(const Opened& opened, const loader::ModelPart& target) {
  FORETOKEN_TRY(const kv::BlockFile::Shape shape, FileShape(opened, target));
  FORETOKEN_TRY(kv::BlockFile file, kv::BlockFile::Open(opened.options.cache_file, shape));
  return StoreOver(std::move(file), opened);
}

}  // namespace foretoken::engine
