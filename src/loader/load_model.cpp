// SPDX-License-Identifier: Apache-2.0
#include "loader/load_model.h"

#include <utility>

namespace foretoken::loader {
namespace {

void NotePaging(const Loading& loading, const model::LocalRunner& runner) {
  const model::ExpertsInfo& experts = runner.info().experts;
  if (!loading.memory.paged || experts.n_layers == 0) return;
  const model::TileMemory& tiles = runner.weights().tiles();
  loading.notices.push_back(PagingNotice(loading.memory, tiles.path(),
                                         experts.expert_bytes * experts.n_used * experts.n_layers,
                                         tiles.ReadSpeed()));
}

}  // namespace

bool Report(const EngineOptions& options, const MemoryPlan& memory, const std::string& path,
            const model::LoadStep& step) {
  if (!options.on_load_progress) return true;
  const auto done = static_cast<std::int64_t>(step.done_bytes),
             total = static_cast<std::int64_t>(step.total_bytes);
  return options.on_load_progress(
      {.what = path,
       .step = step.name,
       .fraction = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total),
       .bytes = done,
       .total_bytes = total,
       .memory = memory.needs,
       .available_bytes = memory.available,
       .experts_paged = memory.paged});
}

Result<std::unique_ptr<model::LocalRunner>> LoadModel(const Loading& loading, const ModelPart& part,
                                                      const formats::Checkpoint& checkpoint) {
  const MemoryPlan& memory = loading.memory;
  const model::TileCache cache =
      TileCacheFor(loading.options.repack_cache, checkpoint, memory.paged);
  auto loaded = model::LocalRunner::Load(
      checkpoint, part.config, part.options, loading.kernels, loading.pool,
      {.cache = &cache,
       .paged = memory.paged,
       .on_progress =
           [&](const model::LoadStep& step) {
             return Report(loading.options, memory, checkpoint.path(), step);
           },
       .on_notice = [&](std::string what) { loading.notices.push_back(std::move(what)); }});
  if (!loaded) return Fail(std::move(loaded).error().In(checkpoint.path()));
  NotePaging(loading, **loaded);
  return loaded;
}

}  // namespace foretoken::loader
