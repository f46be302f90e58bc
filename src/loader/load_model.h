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
#include "model/local_runner.h"

namespace foretoken::loader {

// What the loading of an engine's models has in common.
struct Loading {
  const EngineOptions& options;
  const MemoryPlan& memory;
  const kernels::Kernels& kernels;
  ThreadPool& pool;
  std::vector<std::string>& notices;  // get what failed without harm, and what paging costs
};

// Calls options.on_load_progress. False: the program wants to stop.
bool Report(const EngineOptions& options, const MemoryPlan& memory, const std::string& path,
            const model::LoadStep& step);

// Errors: those of LocalRunner::Load, with the file's name.
[[nodiscard]] Result<std::unique_ptr<model::LocalRunner>> LoadModel(
    const Loading& loading, const ModelPart& part, const formats::Checkpoint& checkpoint);

// The bytes of weights that stay in memory. Paged experts come and go.
inline std::int64_t ResidentWeights(const MemoryPlan& memory, const model::RunnerInfo& info) {
  return memory.paged ? info.ReadBytes(0) : info.weight_bytes;
}

}  // namespace foretoken::loader
