// SPDX-License-Identifier: Apache-2.0
#include "model/local_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"
#include "model/network.h"
#include "model/ranks/heads.h"

namespace foretoken::model {
namespace {

CacheLayer CacheLayerOf(const AttentionConfig& a, const Division& division) {
  return {.n_kv_heads = a.cache_layer < 0 ? OwnHeads(a, division).keys.n() : 0,
          .head_dim = a.head_dim,
          .windowed = a.window != 0};
}
// Each rank has all of a latent cache: every head reads it whole.
CacheLayer CacheLayerOf(const LatentAttentionConfig& a, const Division&) {
  return {.n_kv_heads = 1, .head_dim = a.key_dim(), .values_in_keys = true};
}

CacheLayer CacheLayerOf(const ShortConvConfig&, const Division&) {
  return {};
}
CacheLayer CacheLayerOf(const DeltaNetConfig&, const Division&) {
  return {};
}
CacheLayer CacheLayerOf(const Mamba2Config&, const Division&) {
  return {};
}
CacheLayer CacheLayerOf(const NoPart&, const Division&) {
  return {};
}

// What this rank keeps of each layer.
std::vector<CacheLayer> CacheLayers(const ModelConfig& config, const Division& division) {
  std::vector<CacheLayer> layers;
  for (const LayerConfig& layer : config.layers)
    layers.push_back(
        std::visit([&](const auto& mixer) { return CacheLayerOf(mixer, division); }, layer.mixer));
  return layers;
}

std::vector<StateLayer> StateLayers(const ModelConfig& config, const Division& division) {
  std::vector<StateLayer> layers;
  for (const LayerConfig& layer : config.layers) {
    StateLayer& state = layers.emplace_back();
    if (const auto* conv = std::get_if<ShortConvConfig>(&layer.mixer))
      state = {.input = division.Own(config.dim, tensor::kBlock).n(), .seen = conv->taps - 1};
    if (const auto* delta = std::get_if<DeltaNetConfig>(&layer.mixer))
      state = {.input = delta->kept(),
               .seen = delta->taps - 1,
               .state = std::int64_t{division.Own(delta->n_value_heads, 1).n()} * delta->head_dim *
                        delta->head_dim};
    const auto* mamba = layer.beside ? &*layer.beside : std::get_if<Mamba2Config>(&layer.mixer);
    if (mamba != nullptr)
      state = {.input = mamba->kept(),
               .seen = mamba->taps - 1,
               .state = std::int64_t{division.Own(mamba->n_heads, 1).n()} * mamba->head_dim *
                        mamba->state_size};
  }
  return layers;
}

ExpertsInfo InfoOfExperts(const ModelConfig& config, const Weights& weights) {
  ExpertsInfo info;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const ExpertsConfig* experts = config.layers[i].experts();
    if (experts == nullptr) continue;
    const auto& w = std::get<ExpertsWeights>(weights.layers[i].feed_forward);
    ++info.n_layers;
    info.n_experts = experts->n_experts;
    info.n_used = experts->n_used;
    bytes += w.gate.expert_bytes + w.up.expert_bytes + w.down.expert_bytes;
  }
  info.expert_bytes = static_cast<std::int64_t>(bytes) / std::max(1, info.n_layers);
  return info;
}

}  // namespace

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
  if (head.target_layers != 0 && head.target_layers != base.n_layers())
    return mismatch(fmt::format("it belongs behind {} blocks, the target has {}",
                                head.target_layers, base.n_layers()));
  for (const int layer : head.feature_layers)
    if (layer > base.n_layers())
      return mismatch(fmt::format("it reads layer {}, the target has {}", layer, base.n_layers()));
  if (head.reads_cache) return {};
  const bool own_embedding = checkpoint.Find("token_embd.weight") != nullptr,
             own_output = checkpoint.Find("output.weight") != nullptr;
  if (config.dim != base.dim && !(own_embedding && own_output))
    return mismatch(
        fmt::format("it is {} wide, the target {}, and it has no embedding and output "
                    "head of its own",
                    config.dim, base.dim));
  if (const auto* embedding = checkpoint.Find("token_embd.weight");
      head.drafts_blocks() &&
      head.mask >= (embedding != nullptr ? embedding->shape[1] : base.vocabulary))
    return mismatch(fmt::format("no row of the embedding is its mask token {}", head.mask));
  return {};
}

namespace {

// Sets the layer of the target that a layer of an assistant reads: the last one of its kind, with a
// window or without, or the one whose cache that reads. Each rank must have the same heads of both.
Status FindCache(const ModelConfig& base, const Division& division, LayerConfig& layer) {
  AttentionConfig& own = layer.attention();
  const auto mismatch = [&](const char* why) {
    return Fail(ErrorCode::kMismatch,
                fmt::format("head: block {}: {}; use a head that was trained for this target",
                            layer.block, why));
  };
  const auto attention = [&](int i) {
    return std::get_if<AttentionConfig>(&base.layers[static_cast<std::size_t>(i)].mixer);
  };
  int source = base.n_layers() - 1;
  while (source >= 0 &&
         (attention(source) == nullptr || (attention(source)->window != 0) != (own.window != 0)))
    --source;
  if (source < 0) return mismatch("the target has no layer of its kind");
  const AttentionConfig& of = *attention(source);
  if (of.n_kv_heads != own.n_kv_heads || of.head_dim != own.head_dim)
    return mismatch("its heads are not those of the target's cache");
  if (own.window != 0 && own.window >= of.window)
    return mismatch("it sees more positions than the target keeps");
  for (int rank = 0; rank < division.size(); ++rank) {
    const OutputRange keys = HeadsOf(own, division, rank).keys;
    if (keys.n() != 0 && keys != HeadsOf(of, division, rank).keys)
      return Fail(ErrorCode::kUnsupported,
                  "head: the ranks divide its heads otherwise than the target's cache; use fewer "
                  "ranks, or another drafter");
  }
  own.cache_layer = of.cache_layer >= 0 ? of.cache_layer : source;
  return {};
}

Status FindCaches(const ModelConfig& base, const Division& division, ModelConfig& own) {
  for (LayerConfig& layer : own.layers) FORETOKEN_CHECK_OK(FindCache(base, division, layer));
  return {};
}

}  // namespace

std::int64_t CacheBytes(const ModelConfig& config, const RunnerOptions& options) {
  return static_cast<std::int64_t>(
      CacheMemory::Bytes(CacheLayers(config, options.division), options.cache) +
      StateMemory::Bytes(StateLayers(config, options.division), options.state));
}

std::int64_t CheckpointBytes(const ModelConfig& config, const RunnerOptions& options) {
  return static_cast<std::int64_t>(
      StateMemory::CheckpointBytes(StateLayers(config, options.division), options.state));
}

std::int64_t ScratchBytes(const ModelConfig& config, const RunnerOptions& options, int n_threads) {
  const Scratch scratch(config, options.max_rows, options.max_logit_rows, n_threads,
                        options.division.size());
  return static_cast<std::int64_t>(scratch.size_bytes());
}

LocalRunner::LocalRunner(const ModelConfig& config, const RunnerOptions& options,
                         const kernels::Kernels& kernels, ThreadPool& pool, Weights weights,
                         CacheMemory cache, const OfTarget& of_target)
    : config_(config),
      kernels_(kernels),
      pool_(pool),
      weights_(std::move(weights)),
      cache_(std::move(cache)),
      read_cache_(of_target.cache != nullptr ? *of_target.cache : cache_),
      own_states_(StateLayers(config, options.division),
                  of_target.states != nullptr ? StateOptions() : options.state),
      states_(of_target.states != nullptr ? *of_target.states : own_states_),
      scratch_(config, options.max_rows, options.max_logit_rows, pool.size(),
               options.division.size()),
      ranks_(options.ranks != nullptr ? *options.ranks : alone_),
      division_(options.division),
      network_(config_, weights_,
               {.kernels = kernels,
                .pool = pool,
                .scratch = scratch_,
                .cache = read_cache_,
                .states = states_,
                .ranks = ranks_,
                .division = division_},
               options.max_positions),
      finite_rows_(static_cast<std::size_t>(options.max_logit_rows)),
      own_features_(config.head ? static_cast<std::size_t>(options.max_logit_rows) : 0) {
  info_ = {.max_rows = options.max_rows,
           .max_logit_rows = options.max_logit_rows,
           .n_blocks = options.cache.n_blocks,
           .n_layers = config.n_layers(),
           .dim = config.dim,
           .vocabulary = config.vocabulary,
           .readable = weights_.embedding_rows(),
           .weight_bytes = weights_.resident_bytes(),
           .experts = InfoOfExperts(config, weights_),
           .output_tokens = weights_.output_tokens,
           .reduced_tokens = weights_.reduced_tokens,
           .chooses = !ranks_.alone()};
  ReserveChoices();
}

void LocalRunner::ReserveChoices() {
  const KeyBounds& bounds = read_cache_.bounds();
  if (!bounds.kept()) return;
  const int n_blocks = read_cache_.options().n_blocks;
  unknown_blocks_.reserve(static_cast<std::size_t>(n_blocks));
  bounds_work_ = AlignedBuffer<float>(static_cast<std::size_t>(pool_.size() * WorkOfBounds()));
  for (int thread = 0; thread < pool_.size(); ++thread)
    scratch_.block_choices.emplace_back(n_blocks, bounds.head_dim());
}

Result<std::unique_ptr<LocalRunner>> LocalRunner::Load(const formats::Checkpoint& checkpoint,
                                                       const ModelConfig& config,
                                                       const RunnerOptions& options,
                                                       const kernels::Kernels& kernels,
                                                       ThreadPool& pool, const LoadOptions& load) {
  FORETOKEN_TRY(CacheMemory cache,
                CacheMemory::Create(CacheLayers(config, options.division), options.cache));
  FORETOKEN_TRY(Weights weights, Weights::Load(checkpoint, config, options.output_tokens,
                                               options.division, pool, load));
  return std::unique_ptr<LocalRunner>(
      new LocalRunner(config, options, kernels, pool, std::move(weights), std::move(cache), {}));
}

Result<std::unique_ptr<LocalRunner>> LocalRunner::LoadHead(const formats::Checkpoint& checkpoint,
                                                           const ModelConfig& config,
                                                           const RunnerOptions& options,
                                                           const kernels::Kernels& kernels,
                                                           ThreadPool& pool, LocalRunner& target) {
  const Division& division = target.division_;
  FORETOKEN_TRY(CacheMemory cache,
                CacheMemory::Create(CacheLayers(config, division), options.cache));
  const ModelConfig& base = target.config();
  FORETOKEN_CHECK_OK(CheckHeadFits(checkpoint, config, base));
  ModelConfig own = config;
  const bool reads_cache = config.head->reads_cache;
  if (reads_cache) FORETOKEN_CHECK_OK(FindCaches(base, division, own));
  if (!reads_cache && (own.vocabulary == 0 || checkpoint.Find("output.weight") == nullptr))
    own.vocabulary = base.vocabulary;
  FORETOKEN_TRY(Weights weights, Weights::LoadHead(checkpoint, own, target.weights_, base,
                                                   options.output_tokens, division, pool));
  RunnerOptions divided = options;
  divided.division = division;
  divided.ranks = division.size() == 1 ? nullptr : &target.ranks_;
  return std::unique_ptr<LocalRunner>(
      new LocalRunner(own, divided, kernels, pool, std::move(weights), std::move(cache),
                      {.cache = reads_cache ? &target.read_cache_ : nullptr}));
}

Result<std::unique_ptr<LocalRunner>> LocalRunner::LoadCopy(
    const formats::Checkpoint& checkpoint, const RunnerOptions& options, const CopyTypes& types,
    const kernels::Kernels& kernels, const CopyPools& pools, LocalRunner& target,
    const LoadOptions& load) {
  FORETOKEN_TRY(CacheMemory none, CacheMemory::Create({}, {}));
  FORETOKEN_TRY(Weights weights,
                Weights::LoadCopy(checkpoint, target.config_, target.weights_, types,
                                  options.output_tokens, target.division_, pools.of_loading, load));
  RunnerOptions own = options;
  own.division = target.division_;
  own.ranks = target.division_.size() == 1 ? nullptr : &target.ranks_;
  return std::unique_ptr<LocalRunner>(
      new LocalRunner(target.config_, own, kernels, pools.of_passes, std::move(weights),
                      std::move(none), {.cache = &target.read_cache_, .states = &target.states_}));
}

void LocalRunner::KeepFeatures(const FeatureRequest& request) {
  info_.features_width = std::int64_t{request.parts()} * config_.dim;
  features_ = AlignedBuffer<float>(static_cast<std::size_t>(info_.max_rows) *
                                   static_cast<std::size_t>(info_.features_width));
  network_.Keep(request, features_.data());
  result_ = {};
}

void LocalRunner::ClearBlocks(std::span<const std::int32_t> blocks) noexcept {
  cache_.Clear(blocks);
}

void LocalRunner::BlockParts(std::int32_t block, Parts& parts) noexcept {
  parts.clear();
  if (ranks_.alone()) cache_.AddParts(block, parts);
}

void LocalRunner::StateParts(std::int32_t checkpoint, Parts& parts) noexcept {
  parts.clear();
  if (ranks_.alone()) own_states_.AddParts(checkpoint, parts);
}

const PassResult& LocalRunner::Run(const Pass& pass) noexcept {
  Check(pass);
  const RankTraffic before = ranks_.traffic();
  if (states_.n_checkpoints() > 0) RestoreStates(pass);
  if (read_cache_.bounds().kept()) UpdateBounds(pass);
  NoteResult(pass, RunOnTeam(pass));
  if (states_.n_checkpoints() > 0) SaveStates(pass);
  result_.traffic = ranks_.traffic().Since(before);
  return result_;
}

void LocalRunner::Check(const Pass& pass) const noexcept {
  FORETOKEN_CHECK(pass.n_rows() >= 1 && pass.n_rows() <= info_.max_rows);
  FORETOKEN_CHECK(static_cast<int>(pass.logit_rows.size()) <= info_.max_logit_rows);
  FORETOKEN_CHECK(pass.best_blocks == 0 || (pass.window > 0 && read_cache_.bounds().kept()));
  FORETOKEN_CHECK(!pass.reduced || !info_.reduced_tokens.empty());
  FORETOKEN_CHECK(!pass.wants_states || !config_.head);
  FORETOKEN_CHECK(pass.choices.empty() || pass.choices.size() == pass.logit_rows.size());
  const bool is_block = config_.head && config_.head->drafts_blocks();
  FORETOKEN_CHECK(!config_.head || is_block || pass.features != nullptr);
  const bool windows = read_cache_.options().n_window_blocks != 0;
  const int own = config_.head && config_.head->reads_cache ? 0 : 1;  // of its last position
  for (const kv::Segment& s : pass.segments) {
    FORETOKEN_CHECK(s.state.from <= s.first_position && s.state.from <= s.state.to);
    FORETOKEN_CHECK(std::max(s.state.source, s.state.checkpoint) < states_.n_checkpoints());
    const int needed = kv::BlocksFor(s.first_position + s.n_rows - 1 + own);
    FORETOKEN_CHECK(static_cast<int>(s.blocks.size()) >= needed);
    FORETOKEN_CHECK(!windows || static_cast<int>(s.window_blocks.size()) >= needed);
  }
}

void LocalRunner::RestoreStates(const Pass& pass) noexcept {
  for (const kv::Segment& s : pass.segments)
    if (s.state.source >= 0)
      pool_.Run(
          [&](int thread) { states_.Restore(s.seq, s.state.from, s.state.source, pool_, thread); });
  for (const kv::Segment& s : pass.segments) CopyRows(s);
}

void LocalRunner::CopyRows(const kv::Segment& s) noexcept {
  const auto block = static_cast<std::size_t>(s.first_position / tensor::kKvBlock);
  if (s.rows_of >= 0) read_cache_.Copy(s.rows_of, s.blocks[block], false);
  if (s.window_rows_of >= 0) read_cache_.Copy(s.window_rows_of, s.window_blocks[block], true);
}

// The pass writes keys, and its rows may choose among blocks whose bounds nobody has asked for yet.
void LocalRunner::UpdateBounds(const Pass& pass) noexcept {
  KeyBounds& bounds = read_cache_.bounds();
  for (const kv::Segment& s : pass.segments) {
    const int end = kv::BlocksFor(s.first_position + s.n_rows);
    for (int i = s.first_position / tensor::kKvBlock; i < end; ++i)
      bounds.Forget(s.blocks[static_cast<std::size_t>(i)]);
  }
  if (pass.best_blocks == 0) return;
  unknown_blocks_.clear();
  for (const kv::Segment& s : pass.segments)
    for (int i = pass.SkippedBlocks(s.first_position + s.n_rows); i > 0; --i)
      if (const std::int32_t block = s.blocks[static_cast<std::size_t>(i)]; !bounds.Knows(block)) {
        bounds.Note(block);
        unknown_blocks_.push_back(block);
      }
  if (!unknown_blocks_.empty()) pool_.Run([&](int thread) { LearnBounds(thread); });
}

// A thread takes heads, with all blocks.
void LocalRunner::LearnBounds(int thread) noexcept {
  KeyBounds& bounds = read_cache_.bounds();
  float* const work = bounds_work_.data() + thread * WorkOfBounds();
  const auto heads = pool_.ShareOf(bounds.n_heads(), thread);
  for (int i = heads.begin; i < heads.end; ++i) {
    const auto [layer, head, dim, begin] = bounds.HeadAt(i);
    const CacheMemory::HeadView view = read_cache_.Head(layer, head);
    for (const std::int32_t block : unknown_blocks_)
      bounds.Learn(i, block, view.k + static_cast<std::size_t>(block) * view.k_stride,
                   read_cache_.options().k_type, kernels_, work);
  }
}

void LocalRunner::SaveStates(const Pass& pass) noexcept {
  for (const kv::Segment& s : pass.segments)
    if (s.state.checkpoint >= 0)
      pool_.Run(
          [&](int thread) { states_.Save(s.seq, s.state.to, s.state.checkpoint, pool_, thread); });
}

bool LocalRunner::HasCertainties(const Pass& pass) const noexcept {
  return pass.own_features && weights_.head && weights_.head->certainty != nullptr;
}

// Returns how many threads took part.
int LocalRunner::RunOnTeam(const Pass& pass) noexcept {
  if (pool_.size() == 1) {
    network_.Run(pass, pool_, false);
    return 1;
  }
  const std::uint64_t work = network_.work().Of(pass);
  const double begin_us = NowMicroseconds();
  const bool alone = team_choice_.Alone(work, begin_us);
  network_.Run(pass, pool_, alone);
  team_choice_.Observe(work, NowMicroseconds() - begin_us);
  return alone ? 1 : pool_.size();
}

void LocalRunner::NoteResult(const Pass& pass, int team) noexcept {
  const std::size_t n = pass.logit_rows.size();
  const Output& output = network_.OutputOf(pass);
  for (std::size_t i = 0; i < n; ++i) finite_rows_[i] = output.Finite(static_cast<int>(i), team);
  for (std::size_t i = 0; config_.head && i < n; ++i)
    own_features_[i] = network_.OwnFeature(pass, static_cast<int>(i));
  result_ = {.logits = output.logits().x,
             .logits_stride = output.logits().stride,
             .finite_rows = std::span(finite_rows_).first(n),
             .chosen = output.Chosen(pass),
             .features = info_.features_width == 0 ? nullptr : features_.data(),
             .features_width = info_.features_width,
             .states = pass.wants_states ? network_.states().x : nullptr,
             .states_stride = network_.states().stride,
             .distinct_experts = scratch_.experts.n_distinct,
             .own_features = std::span(own_features_).first(config_.head ? n : 0),
             .certainties = HasCertainties(pass)
                                ? std::span<const float>(scratch_.certainties.data(), n)
                                : std::span<const float>(),
             .candidates = network_.CandidatesOf(pass)};
}

}  // namespace foretoken::model
