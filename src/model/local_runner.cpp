// SPDX-License-Identifier: Apache-2.0
#include "model/local_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "model/forward.h"

namespace foretoken::model {
namespace {

// From so many multiplications in a layer (for all rows) on, a pass takes so long that waiting for
// a thread costs less than the thread's help saves.
constexpr std::uint64_t kAlwaysForTheTeam = 16'000'000;

std::vector<CacheLayer> CacheLayers(const ModelConfig& config) {
  return std::vector<CacheLayer>(static_cast<std::size_t>(config.n_layers),
                                 {config.n_kv_heads, config.head_dim});
}

Status CheckHeadFits(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                     const ModelConfig& base) {
  const HeadConfig& head = *config.head;
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
  return {};
}

}  // namespace

std::int64_t CacheBytes(const ModelConfig& config, const CacheOptions& options) {
  return static_cast<std::int64_t>(CacheMemory::Bytes(CacheLayers(config), options));
}

LocalRunner::LocalRunner(const ModelConfig& config, const RunnerOptions& options,
                         const kernels::Kernels& kernels, ThreadPool& pool, Weights weights,
                         CacheMemory cache)
    : config_(config),
      max_positions_(options.max_positions),
      kernels_(kernels),
      pool_(pool),
      weights_(std::move(weights)),
      cache_(std::move(cache)),
      rope_(config.rope, options.max_positions, weights_.rope_factors),
      scratch_(config, options.max_rows, options.max_logit_rows, pool.size()),
      layer_work_(static_cast<std::uint64_t>(config.dim) *
                  static_cast<std::uint64_t>(
                      2 * config.head_dim * (config.n_heads + config.n_kv_heads) + 3 * config.ff)),
      finite_rows_(static_cast<std::size_t>(options.max_logit_rows)),
      own_features_(config.head ? static_cast<std::size_t>(options.max_logit_rows) : 0) {
  info_ = {.max_rows = options.max_rows,
           .max_logit_rows = options.max_logit_rows,
           .n_blocks = options.cache.n_blocks,
           .n_layers = config.n_layers,
           .dim = config.dim,
           .vocabulary = config.vocabulary,
           .readable = weights_.embedding_rows(),
           .weight_bytes = weights_.resident_bytes(),
           .output_tokens = weights_.output_tokens};
}

Result<std::unique_ptr<LocalRunner>> LocalRunner::Load(const formats::Checkpoint& checkpoint,
                                                       const ModelConfig& config,
                                                       const RunnerOptions& options,
                                                       const kernels::Kernels& kernels,
                                                       ThreadPool& pool, const LoadOptions& load) {
  FORETOKEN_TRY(CacheMemory cache, CacheMemory::Create(CacheLayers(config), options.cache));
  FORETOKEN_TRY(Weights weights,
                Weights::Load(checkpoint, config, options.output_tokens, pool, load));
  return std::unique_ptr<LocalRunner>(
      new LocalRunner(config, options, kernels, pool, std::move(weights), std::move(cache)));
}

Result<std::unique_ptr<LocalRunner>> LocalRunner::LoadHead(
    const formats::Checkpoint& checkpoint, const ModelConfig& config, const RunnerOptions& options,
    const kernels::Kernels& kernels, ThreadPool& pool, const LocalRunner& target) {
  FORETOKEN_TRY(CacheMemory cache, CacheMemory::Create(CacheLayers(config), options.cache));
  const ModelConfig& base = target.config();
  FORETOKEN_CHECK_OK(CheckHeadFits(checkpoint, config, base));
  ModelConfig own = config;
  if (own.vocabulary == 0 || own.head->kind == HeadKind::kMtp ||
      checkpoint.Find("output.weight") == nullptr)
    own.vocabulary = base.vocabulary;
  FORETOKEN_TRY(Weights weights, Weights::LoadHead(checkpoint, own, target.weights_, base, pool));
  return std::unique_ptr<LocalRunner>(
      new LocalRunner(own, options, kernels, pool, std::move(weights), std::move(cache)));
}

void LocalRunner::KeepFeatures(const FeatureRequest& request) {
  feature_request_ = request;
  info_.features_width = std::int64_t{request.parts()} * config_.dim;
  features_ = AlignedBuffer<float>(static_cast<std::size_t>(info_.max_rows) *
                                   static_cast<std::size_t>(info_.features_width));
  result_ = {};
}

void LocalRunner::ClearBlocks(std::span<const std::int32_t> blocks) noexcept {
  cache_.Clear(blocks);
}

const PassResult& LocalRunner::Run(const Pass& pass) noexcept {
  Check(pass);
  ExtendRope(pass);
  NoteResult(pass, RunOnTeam(pass));
  return result_;
}

void LocalRunner::Check(const Pass& pass) const noexcept {
  FORETOKEN_CHECK(pass.n_rows() >= 1 && pass.n_rows() <= info_.max_rows);
  FORETOKEN_CHECK(static_cast<int>(pass.logit_rows.size()) <= info_.max_logit_rows);
  FORETOKEN_CHECK(!config_.head || pass.features != nullptr);
  for (const kv::Segment& s : pass.segments)
    FORETOKEN_CHECK(static_cast<int>(s.blocks.size()) >=
                    kv::BlocksFor(s.first_position + s.n_rows));
}

// New positions come in strides of 32, so that decoding seldom pays for the table.
void LocalRunner::ExtendRope(const Pass& pass) noexcept {
  for (const kv::Segment& s : pass.segments) {
    const int end = (s.first_position + s.n_rows + 31) / 32 * 32;
    rope_.Extend(std::min(end, max_positions_));
  }
}

// Returns how many threads took part.
int LocalRunner::RunOnTeam(const Pass& pass) noexcept {
  ForwardPass forward({.config = config_,
                       .weights = weights_,
                       .rope = rope_,
                       .kernels = kernels_,
                       .pool = pool_,
                       .scratch = scratch_,
                       .cache = cache_,
                       .feature_request = feature_request_,
                       .features = features_.data()},
                      pass);
  const std::uint64_t work = layer_work_ * static_cast<std::uint64_t>(pass.n_rows());
  if (pool_.size() == 1 || work > kAlwaysForTheTeam) {
    forward.Run(false);
    return pool_.size();
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const bool alone = team_choice_.Alone(work);
  forward.Run(alone);
  team_choice_.Observe(work,
                       std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  return alone ? 1 : pool_.size();
}

void LocalRunner::NoteResult(const Pass& pass, int team) noexcept {
  const std::size_t n = pass.logit_rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    bool finite = true;
    for (int thread = 0; thread < team; ++thread)
      finite &= scratch_.not_finite[static_cast<std::size_t>(thread) *
                                        static_cast<std::size_t>(scratch_.not_finite_stride) +
                                    i] == 0;
    finite_rows_[i] = finite;
  }
  if (config_.head)
    for (std::size_t i = 0; i < n; ++i)
      own_features_[i] = config_.head->kind == HeadKind::kMtp
                             ? scratch_.last.Row(static_cast<int>(i))
                             : scratch_.residual.Row(pass.logit_rows[i]);
  result_ = {.logits = scratch_.logits.data(),
             .logits_stride = scratch_.logits_stride,
             .finite_rows = std::span(finite_rows_).first(n),
             .features = info_.features_width == 0 ? nullptr : features_.data(),
             .features_width = info_.features_width,
             .own_features = std::span(own_features_).first(config_.head ? n : 0)};
}

}  // namespace foretoken::model
