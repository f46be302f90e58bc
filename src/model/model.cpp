// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <algorithm>

#include "base/check.h"
#include "model/forward.h"

namespace foretoken::model {

Model::Model(const ModelConfig& config, const ModelOptions& options, const kernels::Kernels& kernels, ThreadPool& pool, Weights weights)
    : config_(config),
      options_(options),
      kernels_(kernels),
      pool_(pool),
      weights_(std::move(weights)),
      rope_(config.rope, options.max_positions, weights_.rope_factors),
      scratch_(config, options.max_rows, options.max_logit_rows, pool.size()) {}

Result<std::unique_ptr<Model>> Model::Load(const formats::Checkpoint& checkpoint, const ModelConfig& config, const ModelOptions& options,
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
  ForwardPass(config_, weights_, rope_, kernels_, pool_, scratch_, batch, cache).Run();
}

}  // namespace foretoken::model
