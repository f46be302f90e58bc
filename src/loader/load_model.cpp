// SPDX-License-Identifier: Apache-2.0
#include "loader/load_model.h"

#include <algorithm>
#include <utility>

#include "base/machine/background_thread.h"
#include "comm/agreement.h"
#include "loader/ranks/model_agreement.h"
#include "loader/ranks/open_order.h"
#include "model/ranks/lead_runner.h"

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

namespace {

model::LoadOptions OptionsOf(const Loading& loading, const formats::Checkpoint& checkpoint,
                             const model::TileCache& cache) {
  return {
      .cache = &cache,
      .paged = loading.memory.paged,
      .on_progress =
          [&loading, &checkpoint](const model::LoadStep& step) {
            return Report(loading.options, loading.memory, checkpoint.path(), step);
          },
      .on_notice = [&loading](std::string what) { loading.notices.push_back(std::move(what)); }};
}

Result<std::unique_ptr<model::LocalRunner>> LoadOwn(const Loading& loading, const ModelPart& part,
                                                    const formats::Checkpoint& checkpoint) {
  const model::TileCache cache =
      TileCacheFor(loading.options.repack_cache, loading.options.repack_cache_gb, checkpoint,
                   loading.memory.paged);
  return model::LocalRunner::Load(checkpoint, part.config, part.options, loading.kernels,
                                  loading.pool, OptionsOf(loading, checkpoint, cache));
}

model::TileCache CacheOfCopy(const Loading& loading, const ModelPart& part,
                             const formats::Checkpoint& checkpoint) {
  return TileCacheFor(loading.options.repack_cache, loading.options.repack_cache_gb, checkpoint,
                      false)
      .ForCopy(NameOf(*part.copy));
}

Result<std::unique_ptr<model::LocalRunner>> LoadCopy(const Loading& loading, const ModelPart& part,
                                                     const formats::Checkpoint& checkpoint,
                                                     model::LocalRunner& target) {
  const model::TileCache cache = CacheOfCopy(loading, part, checkpoint);
  model::LoadOptions options = OptionsOf(loading, checkpoint, cache);
  options.paged = false;
  return model::LocalRunner::LoadCopy(checkpoint, part.options, *part.copy, loading.kernels,
                                      {loading.pool, loading.pool}, target, options);
}

void SendOpen(const Loading& loading, const ModelPart& part, const std::string& path, int number,
              int target) {
  model::Message message;
  message.Begin(model::Order::kOpen, number);
  const OpenOrder order = {.path = path,
                           .target = target,
                           .copy = part.copy ? NameOf(*part.copy) : "",
                           .vocabulary = part.config.vocabulary,
                           .options = part.options,
                           .shares = loading.group->shares(),
                           .repack_cache = loading.options.repack_cache,
                           .repack_cache_gb = loading.options.repack_cache_gb};
  VisitFields(order, model::AddFields(message));
  static_cast<void>(message.Send(loading.group->ranks()));  // what follows says that a rank is lost
}

}  // namespace

Result<std::unique_ptr<model::LocalRunner>> LoadShare(const Loading& loading, const ModelPart& part,
                                                      const formats::Checkpoint& checkpoint,
                                                      model::LocalRunner* target) {
  auto loaded = target == nullptr ? LoadOwn(loading, part, checkpoint)
                : part.copy       ? LoadCopy(loading, part, checkpoint, *target)
                            : model::LocalRunner::LoadHead(checkpoint, part.config, part.options,
                                                           loading.kernels, loading.pool, *target);
  if (!loaded) return Fail(std::move(loaded).error().In(checkpoint.path()));
  if (target == nullptr) NotePaging(loading, **loaded);
  return loaded;
}

// Kept tiles are mapped at once. New ones are made on a quarter of the threads, when the machine is idle.
LoadedModel LoadLate(const Loading& loading, const ModelPart& part,
                     const formats::Checkpoint& checkpoint, model::LocalRunner& target) {
  model::RunnerInfo info = target.info();
  info.max_rows = info.max_logit_rows = part.options.max_rows;
  info.weight_bytes = part.copy_size.own;
  info.features_width = 0, info.experts = {};
  info.reduced_tokens = part.options.output_tokens;
  auto load = [cache = CacheOfCopy(loading, part, checkpoint), options = part.options,
               types = *part.copy, &checkpoint, &target, &kernels = loading.kernels,
               &pool = loading.pool](model::LateRunner::Making& making) {
    ThreadPool makers(std::max(1, pool.size() / 4));
    bool idle = false;
    const auto on_progress = [&](const model::LoadStep& step) {
      making.done_bytes = step.done_bytes, making.total_bytes = step.total_bytes;
      if (!idle && step.makes) {
        makers.Run([](int) { RunWhenIdle(); });
        idle = true;
      }
      return true;
    };
    return model::LocalRunner::LoadCopy(
        checkpoint, options, types, kernels, {pool, makers}, target,
        {.cache = &cache, .on_progress = on_progress, .stop = &making.stop});
  };
  LoadedModel model;
  auto late = std::make_unique<model::LateRunner>(
      info, std::move(load), [&notices = loading.notices, &checkpoint](const std::string& why) {
        notices.push_back("self: no copy of " + checkpoint.path() + " drafts: " + why);
      });
  model.late = late.get();
  model.runner = std::move(late);
  return model;
}

Result<LoadedModel> LoadModel(const Loading& loading, const ModelPart& part,
                              const formats::Checkpoint& checkpoint, const LoadedModel* target) {
  LoadedModel model;
  const auto own_target = target == nullptr ? nullptr : target->own;
  if (part.options.ranks == nullptr) {
    FORETOKEN_TRY(auto own, LoadShare(loading, part, checkpoint, own_target));
    model.own = own.get();
    model.runner = std::move(own);
    return model;
  }
  comm::Ranks& ranks = loading.group->ranks();
  model.number = loading.group->NextNumber();
  SendOpen(loading, part, checkpoint.path(), model.number, target == nullptr ? -1 : target->number);
  FORETOKEN_CHECK_OK(AgreeOnModel(ranks, checkpoint.path(), &checkpoint, ""));
  auto own = LoadShare(loading, part, checkpoint, own_target);
  FORETOKEN_CHECK_OK(comm::AllDone(ranks, own ? Status() : Fail(own.error())));
  model.own = own->get();
  model.runner = std::make_unique<model::LeadRunner>(std::move(*own), model.number, ranks);
  return model;
}

}  // namespace foretoken::loader
