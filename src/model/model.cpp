// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <fmt/format.h>

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
                                           const LoadOptions& load) {
  FORETOKEN_TRY(Weights weights,
                Weights::Load(checkpoint, config, options.output_tokens, pool, load));
  return std::unique_ptr<Model>(new Model(config, options, kernels, pool, std::move(weights)));
}

Result<std::unique_ptr<Model>> Model::LoadHead(const formats::Checkpoint& checkpoint,
                                               const ModelConfig& config,
                                               const ModelOptions& options,
                                               const kernels::Kernels& kernels, ThreadPool& pool,
                                               const Model& target) {
  const HeadConfig& head = *config.head;
  const ModelConfig& base = target.config();
  const auto mismatch = [](std::string why) {
    return Fail(ErrorCode::kMismatch,
                fmt::format("head: {}; use a head that was trained for this target", why));
  };
  if (head.target_dim != base.dim)
    return mismatch(fmt::format("it reads hidden states of {} values, the target has {}",
                                head.target_dim, base.dim));
  if (head.target_layers != 0 && head.target_layers != base.n_layers)
    return mismatch(fmt::format("it belongs behind {} blocks, the target has {}",
                                head.target_layers, base.n_layers));
  for (const int layer : head.feature_layers)
    if (layer > base.n_layers)
      return mismatch(fmt::format("it reads layer {}, the target has {}", layer, base.n_layers));
  const bool own_embedding = checkpoint.Find("token_embd.weight") != nullptr,
             own_output = checkpoint.Find("output.weight") != nullptr;
  if (config.dim != base.dim && !(own_embedding && own_output))
    return mismatch(
        fmt::format("it is {} wide, the target {}, and it has no embedding and output "
                    "head of its own",
                    config.dim, base.dim));
  ModelConfig own = config;
  if (own.vocabulary == 0 || head.kind == HeadKind::kMtp || !own_output)
    own.vocabulary = base.vocabulary;
  FORETOKEN_TRY(Weights weights, Weights::LoadHead(checkpoint, own, target.weights_, base, pool));
  auto loaded = std::unique_ptr<Model>(new Model(own, options, kernels, pool, std::move(weights)));
  loaded->logit_rows_.reserve(static_cast<std::size_t>(options.max_logit_rows));
  return loaded;
}

void Model::KeepFeatures(const FeatureRequest& request) {
  feature_request_ = request;
  features_ = AlignedBuffer<float>(static_cast<std::size_t>(options_.max_rows) *
                                   static_cast<std::size_t>(features_width()));
}

const float* Model::own_feature(int i) const {
  return config_.head->kind == HeadKind::kMtp
             ? scratch_.last.Row(i)
             : scratch_.residual.Row(logit_rows_[static_cast<std::size_t>(i)]);
}

bool Model::finite(int i) const noexcept {
  for (int thread = 0; thread < team_; ++thread)
    if (scratch_.not_finite[static_cast<std::size_t>(thread * scratch_.not_finite_stride + i)] != 0)
      return false;
  return true;
}

void Model::Forward(const Batch& batch, kv::Cache& cache) noexcept {
  FORETOKEN_CHECK(batch.n_rows() >= 1 && batch.n_rows() <= options_.max_rows);
  FORETOKEN_CHECK(static_cast<int>(batch.logit_rows.size()) <= options_.max_logit_rows);
  for (const Segment& s : batch.segments) {
    // New positions come in strides of 32, so that decoding pays for the table rarely.
    const int end = (s.first_position + s.n_rows + 31) / 32 * 32;
    rope_.Extend(std::min(end, options_.max_positions));
  }
  FORETOKEN_CHECK(!config_.head || batch.features != nullptr);
  if (config_.head) logit_rows_.assign(batch.logit_rows.begin(), batch.logit_rows.end());
  ForwardPass pass({.config = config_,
                    .weights = weights_,
                    .rope = rope_,
                    .kernels = kernels_,
                    .pool = pool_,
                    .scratch = scratch_,
                    .feature_request = feature_request_,
                    .features = features_.data()},
                   batch, cache);
  team_ = pool_.size();
  const std::uint64_t work = layer_work_ * static_cast<std::uint64_t>(batch.n_rows());
  if (pool_.size() == 1 || work > kAlwaysForTheTeam) return pass.Run(false);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const bool alone = team_choice_.Alone(work);
  if (alone) team_ = 1;
  pass.Run(alone);
  team_choice_.Observe(work,
                       std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
}

}  // namespace foretoken::model
