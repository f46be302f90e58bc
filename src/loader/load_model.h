// SPDX-License-Identifier: Apache-2.0
// loader/load_model.h: loads a network as an engine's options say, and tells how far that is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/options.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "loader/memory_plan.h"
#include "loader/model_part.h"
#include "loader/ranks/rank_group.h"
#include "model/late_runner.h"
#include "model/local_runner.h"

namespace foretoken::loader {

// What the loading of an engine's models has in common.
struct Loading {
  const EngineOptions& options;
  const MemoryPlan& memory;
  const kernels::Kernels& kernels;
  ThreadPool& pool;
  std::vector<std::string>& notices;  // get what failed without harm, and what paging costs
  RankGroup::Impl* group = nullptr;   // the ranks that may share the work; null: this process alone
};

// A network, and this process's part of it: the same, or where ranks share it, what `runner` owns.
struct LoadedModel {
  std::unique_ptr<model::Runner> runner;
  model::LocalRunner* own = nullptr;  // null where it is still being made:
  model::LateRunner* late = nullptr;
  int number = -1;  // among the networks of the ranks
};

// Calls options.on_load_progress. False: the program wants to stop.
bool Report(const EngineOptions& options, const MemoryPlan& memory, const std::string& path,
            const model::LoadStep& step);

// Loads this process's part: all of a network, or where part.options names ranks, a share of it. A head
// reads the hidden states of `target`, which is null for other networks. Errors: those of LocalRunner,
// with the file's name.
[[nodiscard]] Result<std::unique_ptr<model::LocalRunner>> LoadShare(
    const Loading& loading, const ModelPart& part, const formats::Checkpoint& checkpoint,
    model::LocalRunner* target);

// A copy of `target` that is made while the engine works (ModelPart::late). What fails is a notice.
LoadedModel LoadLate(const Loading& loading, const ModelPart& part,
                     const formats::Checkpoint& checkpoint, model::LocalRunner& target);

// LoadShare, and where part.options names ranks, all of them load their shares. Errors: also those of the
// other ranks, and kMismatch (they have another file).
[[nodiscard]] Result<LoadedModel> LoadModel(const Loading& loading, const ModelPart& part,
                                            const formats::Checkpoint& checkpoint,
                                            const LoadedModel* target = nullptr);

// The bytes of weights that stay in memory. Paged experts come and go.
inline std::int64_t ResidentWeights(const MemoryPlan& memory, const model::RunnerInfo& info) {
  return memory.paged ? info.ReadBytes(0) : info.weight_bytes;
}

}  // namespace foretoken::loader
