// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/follower.h"

#include <algorithm>
#include <utility>

#include "base/machine/cpus.h"
#include "base/machine/stack.h"
#include "comm/agreement.h"
#include "foretoken/result.h"
#include "kernels/dispatch.h"
#include "loader/drafts/own_copy.h"
#include "loader/load_model.h"
#include "loader/ranks/cluster_meter.h"
#include "loader/ranks/model_agreement.h"
#include "model/arch/registry.h"

namespace foretoken::loader {
namespace {

tl::unexpected<Error> Damaged() {
  return Fail(ErrorCode::kIo,
              "ranks: rank 0 sent a message that this program does not know; start all ranks with "
              "the same program");
}

// A pass of a block drafter may lack them.
bool HasFeaturesFor(const model::ModelConfig& config, const model::Pass& pass, int width) {
  const bool may_lack = config.head && config.head->drafts_blocks();
  return width == config.features_width(pass.own_features) || (may_lack && width == 0);
}

}  // namespace

Status Follower::Run() {
  comm::Ranks& ranks = group_.ranks();
  if (!ReserveStack(kPassStackBytes)) return Fail(NoMemory("rank"));
  while (true) {
    if (!message_.Receive(ranks)) return ranks.why().empty() ? Damaged() : comm::Lost(ranks);
    if (message_.order() == model::Order::kLeave) return {};
    Status status = CatchNoMemory("rank", [&] { return Obey(); });
    if (status) continue;
    if (ranks.why().empty()) ranks.Abort(status.error().message);
    return status;
  }
}

Status Follower::Obey() {
  switch (message_.order()) {
    case model::Order::kPrepare:
      return Prepare();
    case model::Order::kMeasure:
      return Measure();
    case model::Order::kOpen:
      return Open();
    default:
      break;
  }
  const auto at = networks_.find(message_.runner());
  if (at == networks_.end()) return Damaged();
  Network& network = at->second;
  switch (message_.order()) {
    case model::Order::kPass:
      return RunPass(network);
    case model::Order::kKeepFeatures: {
      model::Words words(message_.body());
      const bool normed = words.Take() != 0;
      const auto layers = words.TakeList();
      if (!words.good()) return Damaged();
      network.runner->KeepFeatures({.layers = {layers.begin(), layers.end()}, .normed = normed});
      return {};
    }
    case model::Order::kClearBlocks:
      network.runner->ClearBlocks(message_.body());
      return {};
    case model::Order::kStop:
      networks_.erase(at);
      return {};
    default:
      return Damaged();
  }
}

// An error of one rank is told to all, and this one goes on to follow.
Status Follower::Prepare() {
  FORETOKEN_TRY(const TeamOrder order, ReadOrder<TeamOrder>(message_.body()));
  const auto make = [&]() -> Status {
    FORETOKEN_TRY(kernels_, kernels::KernelsByName(order.isa));
    FORETOKEN_TRY(const int threads, group_.ThreadsFor(order.threads));
    teams_.push_back(
        std::make_unique<ThreadPool>(threads, order.pin ? UsableCpus() : std::vector<int>()));
    return {};
  };
  const Status made = CatchNoMemory("threads", make);
  if (!comm::AllDone(group_.ranks(), made))
    return group_.ranks().why().empty() ? Status() : comm::Lost(group_.ranks());
  return group_.MeasureSpeeds(*kernels_, *teams_.back());
}

Status Follower::Measure() {
  if (teams_.empty()) return Damaged();
  FORETOKEN_CHECK_OK(MeasureCluster(group_.ranks(), *teams_.back(), *kernels_));
  return {};
}

Result<std::shared_ptr<formats::Checkpoint>> Follower::FileAt(const std::string& path) const {
  for (const auto& [number, network] : networks_)
    if (network.file->path() == path) return network.file;
  FORETOKEN_TRY(auto file, formats::OpenCheckpoint(path));
  return std::shared_ptr<formats::Checkpoint>(std::move(file));
}

Status Follower::Open() {
  FORETOKEN_TRY(const OpenOrder order, ReadOrder<OpenOrder>(message_.body()));
  if (order.repack_cache_gb < 0) return Damaged();
  comm::Ranks& ranks = group_.ranks();
  const auto file = FileAt(order.path);
  Status agreed = AgreeOnModel(ranks, order.path, file ? file->get() : nullptr,
                               file ? "" : file.error().message);
  if (agreed) {
    Result<std::unique_ptr<model::LocalRunner>> runner = Load(order, **file);
    agreed = comm::AllDone(ranks, runner ? Status() : Fail(runner.error()));
    if (agreed) Add(message_.runner(), *file, std::move(*runner));
  }
  return ranks.why().empty() ? Status() : comm::Lost(ranks);
}

Result<std::unique_ptr<model::LocalRunner>> Follower::Load(const OpenOrder& order,
                                                           const formats::Checkpoint& file) {
  const auto target = networks_.find(order.target);
  ModelPart part;
  if (!order.copy.empty()) {
    const auto types = CopyTypesFor(order.copy);
    if (!types || target == networks_.end()) return Damaged();
    part.copy = *types;
    part.config = target->second.runner->config();
  } else if (target == networks_.end()) {
    FORETOKEN_TRY(part.config, model::ConfigFromMetadata(file.metadata()));
  } else {
    FORETOKEN_TRY(part.config, model::HeadConfigFromFile(file));
  }
  part.config.vocabulary = order.vocabulary;
  part.options = order.options;
  part.options.ranks = &group_.ranks();
  part.options.division = {group_.ranks().rank(), order.shares};
  EngineOptions options;
  options.repack_cache = order.repack_cache;
  options.repack_cache_gb = order.repack_cache_gb;
  FORETOKEN_TRY(const MemoryPlan memory, PlanMemory({.needs = NeedsOf(part, file),
                                                     .positions = order.options.max_positions,
                                                     .may_page = KeepsTiles(order.repack_cache)}));
  std::vector<std::string> notices;
  const Loading loading = {options, memory, *kernels_, *teams_.back(), notices, nullptr};
  return CatchNoMemory("model", [&] {
    return LoadShare(loading, part, file,
                     target == networks_.end() ? nullptr : target->second.runner.get());
  });
}

// Passes of a rank whose file has changed give wrong numbers to all.
Status Follower::RunPass(Network& network) {
  model::Pass pass;
  int features_width = 0;
  if (!message_.ReadPass(pass, features_width)) return Damaged();
  const model::RunnerInfo& info = network.runner->info();
  const bool fits = pass.n_rows() <= info.max_rows &&
                    static_cast<int>(pass.logit_rows.size()) <= info.max_logit_rows &&
                    HasFeaturesFor(network.runner->config(), pass, features_width);
  if (!fits) return Damaged();
  network.runner->Run(pass);
  if (!group_.ranks().why().empty()) return comm::Lost(group_.ranks());
  FORETOKEN_CHECK_OK(network.file->Check());
  return network.runner->CheckFiles();
}

}  // namespace foretoken::loader
