// SPDX-License-Identifier: Apache-2.0
// model/local_runner.h: a network that runs in this process, on a team of threads.
//
// It is immutable after Load, but for the memory of the cache, the rope tables and the scratch
// memory that a pass uses.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/machine/thread_pool.h"
#include "comm/ranks.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/memory/cache_memory.h"
#include "model/memory/state_memory.h"
#include "model/network.h"
#include "model/runner.h"
#include "model/scratch.h"
#include "model/team_choice.h"
#include "model/weights/weights.h"

namespace foretoken::model {

struct RunnerOptions {
  int max_rows = 256;       // of one pass
  int max_logit_rows = 16;  // rows with logits in one pass
  int max_positions = 0;    // of a sequence
  // Rows of the output head to keep, ascending; empty: all. A head and a copy have them in a reduced
  // output, beside the whole one. REQUIRES: rows of its ReducibleOutput, if it is a head.
  std::vector<std::int32_t> output_tokens = {};
  CacheOptions cache = {};
  StateOptions state = {};  // where the network has recurrent layers
  // Where several ranks compute the network: they, and which outputs each computes. Null: this
  // process alone.
  comm::Ranks* ranks = nullptr;
  Division division = {};
};

// Bytes of the memory of the cache and of states on this rank, and of what passes write on so many
// threads.
std::int64_t CacheBytes(const ModelConfig& config, const RunnerOptions& options);
// The part of CacheBytes that checkpoints of recurrent states take.
std::int64_t CheckpointBytes(const ModelConfig& config, const RunnerOptions& options);
std::int64_t ScratchBytes(const ModelConfig& config, const RunnerOptions& options, int n_threads);

// Whether a head reads what the target has, by the two configurations. Error: kMismatch (a head of
// another target).
[[nodiscard]] Status CheckHeadFits(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                                   const ModelConfig& base);

class LocalRunner final : public Runner {
 public:
  // `checkpoint`, `kernels` and `pool` must outlive the runner. Errors: those of Weights and
  // CacheMemory.
  [[nodiscard]] static Result<std::unique_ptr<LocalRunner>> Load(
      const formats::Checkpoint& checkpoint, const ModelConfig& config,
      const RunnerOptions& options, const kernels::Kernels& kernels, ThreadPool& pool,
      const LoadOptions& load);

  // A head that reads `target`'s features. It uses the target's embedding and output head where its
  // own file has none, and an assistant reads the target's cache: target and its checkpoint must
  // outlive it. The ranks of the target divide it as they divide the target. Errors: also kMismatch
  // (a head of another target).
  [[nodiscard]] static Result<std::unique_ptr<LocalRunner>> LoadHead(
      const formats::Checkpoint& checkpoint, const ModelConfig& config,
      const RunnerOptions& options, const kernels::Kernels& kernels, ThreadPool& pool,
      LocalRunner& target);

  // A copy of `target` with fewer bits (weights/copy_types.h). Its passes read the target's cache and
  // states, and write keys, values and inputs of their rows there, which the target's next pass of these
  // positions writes over. options: max_rows and max_logit_rows; all else is the target's. The target
  // and its checkpoint must outlive it. It may be loaded on any thread, while the target runs. Errors:
  // those of Weights.
  struct CopyPools {
    ThreadPool &of_passes, &of_loading;
  };
  [[nodiscard]] static Result<std::unique_ptr<LocalRunner>> LoadCopy(
      const formats::Checkpoint& checkpoint, const RunnerOptions& options, const CopyTypes& types,
      const kernels::Kernels& kernels, const CopyPools& pools, LocalRunner& target,
      const LoadOptions& load);

  const PassResult& Run(const Pass& pass) noexcept override;
  void KeepFeatures(const FeatureRequest& request) override;
  void ClearBlocks(std::span<const std::int32_t> blocks) noexcept override;
  void BlockParts(std::int32_t block, Parts& parts) noexcept override;
  void StateParts(std::int32_t checkpoint, Parts& parts) noexcept override;

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  std::int64_t scratch_bytes() const { return static_cast<std::int64_t>(scratch_.size_bytes()); }
  // As of Weights. CheckFiles is for the thread that runs passes, after a pass.
  [[nodiscard]] Status CheckFiles() { return weights_.CheckFiles(pool_); }
  [[nodiscard]] Status QuickCheckFiles() const { return weights_.QuickCheckFiles(); }

 private:
  // What it uses of its target; null: its own.
  struct OfTarget {
    CacheMemory* cache = nullptr;
    StateMemory* states = nullptr;
  };
  LocalRunner(const ModelConfig& config, const RunnerOptions& options,
              const kernels::Kernels& kernels, ThreadPool& pool, Weights weights, CacheMemory cache,
              const OfTarget& of_target);
  void Check(const Pass& pass) const noexcept;
  bool HasCertainties(const Pass& pass) const noexcept;
  int RunOnTeam(const Pass& pass) noexcept;
  void CopyRows(const kv::Segment& segment) noexcept;
  void RestoreStates(const Pass& pass) noexcept;
  void SaveStates(const Pass& pass) noexcept;
  void ReserveChoices();
  void UpdateBounds(const Pass& pass) noexcept;
  void LearnBounds(int thread) noexcept;
  // Threads write no cache line of another thread.
  int WorkOfBounds() const noexcept { return (2 * read_cache_.bounds().head_dim() + 31) / 32 * 32; }
  void NoteResult(const Pass& pass, int team) noexcept;

  ModelConfig config_;
  const kernels::Kernels& kernels_;
  ThreadPool& pool_;
  Weights weights_;
  CacheMemory cache_;
  CacheMemory& read_cache_;  // that passes use: its own, or the target's
  StateMemory own_states_;
  StateMemory& states_;  // that passes use, as of the cache
  Scratch scratch_;
  comm::Alone alone_;
  comm::Ranks& ranks_;
  const Division division_;
  Network network_;
  TeamChoice team_choice_;
  AlignedBuffer<float> features_;  // [max_rows, features_width]
  PassResult result_;              // of the last pass, with the memory of its views:
  std::vector<std::uint8_t> finite_rows_;
  std::vector<const float*> own_features_;
  std::vector<std::int32_t> unknown_blocks_;  // whose bounds a pass needs
  AlignedBuffer<float> bounds_work_;          // [threads, WorkOfBounds()]
};

}  // namespace foretoken::model
