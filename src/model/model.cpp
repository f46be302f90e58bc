// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "model/forward.h"

namespace foretoken::model {
namespace {

// Multiplications in a layer (for all rows) from which a pass takes so long that waiting for a
// thread cannot outweigh its help.
constexpr std::uint64_t kAlwaysForTheTeam = 16'000'000;

}  // namespace

Model::Model(const ModelConfig& config, const ModelOptions& options,
             const kernels::Kernels& kernels, ThreadPool& pool, Weights weights)
    : config_(config),
      options_(options),
      kernels_(kernels),
      pool_(pool),
      weights_(std::move(weights)),
      rope_(config.rope, options.max_positions, weights_.rope_factors),
      scratch_(config, options.max_rows, options.max_logit_rows, pool.size()),
      layer_work_(static_cast<std::uint64_t>(config.dim) *
                  static_cast<std::uint64_t>(
                      2 * config.head_dim * (config.n_heads + config.n_kv_heads) + 3 * config.ff)) {
}

Result<std::unique_ptr<Model>> Model::Load(const formats::Checkpoint& checkpoint,
                                           const ModelConfig& config, const ModelOptions& options,
                                           const kernels::Kernels& kernels, ThreadPool& pool,
                                           const std::function<void(double)>& on_progress) {
  FORETOKEN_TRY(Weights weights, Weights::Load(checkpoint, config, pool, on_progress));
  return std::unique_ptr<Model>(new Model(config, options, kernels, pool, std::move(weights)));
}

void Model::Forward(const Batch& batch, kv::Cache& cache) noexcept {
  FORETOKEN_CHECK(batch.n_rows() >= 1 && batch.n_rows() <= options_.max_rows);
  FORETOKEN_CHECK(static_cast<int>(batch.logit_rows.size()) <= options_.max_logit_rows);
  for (const Segment& s : batch.segments) {
    // New positions come in strides of 32, so that decoding pays for the table rarely.
    const int end = (s.first_position + s.n_rows + 31) / 32 * 32;
    rope_.Extend(std::min(end, options_.max_positions));
  }
  ForwardPass pass(config_, weights_, rope_, kernels_, pool_, scratch_, batch, cache);
  const std::uint64_t work = layer_work_ * static_cast<std::uint64_t>(batch.n_rows());
  if (pool_.size() == 1 || work > kAlwaysForTheTeam) return pass.Run(false);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  pass.Run(team_choice_.Alone(work));
  team_choice_.Observe(work,
                       std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
}

}  // namespace foretoken::model
