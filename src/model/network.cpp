// SPDX-License-Identifier: Apache-2.0
#include "model/network.h"

#include <algorithm>

#include "model/arch/heads/head_kind.h"
#include "model/blocks/attention.h"
#include "model/blocks/embedding.h"
#include "model/blocks/experts/experts.h"
#include "model/blocks/gated_ffn.h"
#include "model/blocks/heads/local_convolution.h"
#include "model/blocks/heads/next_feature.h"
#include "model/blocks/heads/selector.h"
#include "model/blocks/heads/transition.h"
#include "model/blocks/kept_state.h"
#include "model/blocks/latent_attention.h"
#include "model/blocks/layer_scale.h"
#include "model/blocks/per_layer_input.h"
#include "model/blocks/recurrent/delta_net.h"
#include "model/blocks/recurrent/mamba2.h"
#include "model/blocks/recurrent/short_conv.h"
#include "model/blocks/summed_parts.h"

namespace foretoken::model {
namespace {

using Blocks = std::vector<std::unique_ptr<Block>>;

Blocks MakeEntry(const Workspace& space, const ModelConfig& config, const Weights& weights) {
  Blocks blocks;
  if (config.head)
    config.head->kind->add_entry(space, config, weights, blocks);
  else
    blocks.push_back(std::make_unique<Embedding>(space, config, weights));
  if (weights.layer_inputs)
    blocks.push_back(std::make_unique<PerLayerInputs>(space, config, weights));
  return blocks;
}

LocalConvolution::Entry EntryOf(const AttentionWeights& w) {
  return {w.norm, w.q.quantised() || w.k.quantised() || w.v.quantised()};
}
LocalConvolution::Entry EntryOf(const GatedFfnWeights& w) {
  return {w.norm, w.gate.quantised() || w.up.quantised()};
}

std::unique_ptr<Block> MakePart(const Workspace& space, const LayerConfig& config,
                                const LayerWeights& weights, const LayerPlace& place,
                                const Activation& to) {
  if (const ExpertsConfig* experts = config.experts())
    return std::make_unique<Experts>(space, *experts,
                                     std::get<ExpertsWeights>(weights.feed_forward), place, to);
  return std::make_unique<GatedFfn>(space, config.ffn(),
                                    std::get<GatedFfnWeights>(weights.feed_forward), place, to);
}

std::unique_ptr<Block> MakeFeedForward(const Workspace& space, const LayerConfig& config,
                                       const LayerWeights& weights, const LayerPlace& place) {
  if (!config.dense_part)
    return MakePart(space, config, weights, place, space.scratch.residual.View(place.dim));
  const Activation sum = space.scratch.sum.View(place.dim);
  LayerPlace in_sum = place;
  in_sum.residual_scale = 1;
  Blocks parts;
  parts.push_back(
      std::make_unique<GatedFfn>(space, *config.dense_part, *weights.dense_part, in_sum, sum));
  parts.push_back(MakePart(space, config, weights, in_sum, sum));
  return std::make_unique<SummedParts>(space, place, weights.sum_norm, sum, std::move(parts));
}

}  // namespace

Network::Network(const ModelConfig& config, const Weights& weights, const Workspace& space,
                 int max_positions)
    : config_(config),
      weights_(weights),
      space_(space),
      max_positions_(max_positions),
      work_(config),
      entry_(MakeEntry(space, config, weights)),
      output_(space, config, weights) {
  // Behind the last layer nothing else needs the memory of normed rows.
  if (const Activation to = states(); !config.head)
    states_ =
        std::make_unique<KeptState>(space, config.dim, weights.output_norm, config.norm_eps, to.x,
                                    to.stride, [](const Pass& pass) { return pass.wants_states; });
  if (!weights.reduced_tokens.empty())
    reduced_output_.emplace(space, config, weights, Output::Kind::kReduced);
  for (int layer = 0; layer < config.n_layers(); ++layer) AddLayer(layer);
  if (config.head && config.head->reads_cache)
    next_ = std::make_unique<NextFeature>(space, config.head->target_dim, weights.head->next,
                                          output_.last());
  if (config.head && config.head->transition_rank != 0)
    transition_ = std::make_unique<Transition>(space, config, weights);
  if (config.head && config.head->n_candidates != 0)
    selector_ = std::make_unique<Selector>(space, config, weights, output_);
  AddPhases();
}

Network::~Network() = default;

const RopeTable* Network::RopeOf(const RopeConfig* config) {
  if (config == nullptr) return nullptr;
  for (const Rope& rope : ropes_)
    if (rope.config == *config) return &rope.table;
  ropes_.push_back(
      {*config, RopeTable(*config, max_positions_, weights_.FactorsOf(*config, max_positions_))});
  return &ropes_.back().table;
}

std::unique_ptr<Block> Network::MakeMixer(const LayerConfig& config, const LayerWeights& weights,
                                          const LayerPlace& place) {
  const RopeTable* const rope = RopeOf(config.rope());
  if (const auto* latent = std::get_if<LatentAttentionConfig>(&config.mixer))
    return std::make_unique<LatentAttention>(
        space_, *latent, std::get<LatentAttentionWeights>(weights.mixer), place, *rope);
  if (const auto* conv = std::get_if<ShortConvConfig>(&config.mixer))
    return std::make_unique<ShortConv>(space_, *conv, std::get<ShortConvWeights>(weights.mixer),
                                       place);
  if (const auto* delta = std::get_if<DeltaNetConfig>(&config.mixer))
    return std::make_unique<DeltaNet>(space_, *delta, std::get<DeltaNetWeights>(weights.mixer),
                                      place);
  if (const auto* mamba = std::get_if<Mamba2Config>(&config.mixer))
    return std::make_unique<Mamba2>(space_, *mamba, std::get<Mamba2Weights>(weights.mixer), place);
  const AttentionConfig& attention = config.attention();
  Scratch& scratch = space_.scratch;
  const Activation input =
      attention.reads_pair ? scratch.pair.View(2 * config_.dim) : scratch.normed.View(config_.dim);
  return std::make_unique<Attention>(space_, attention, std::get<AttentionWeights>(weights.mixer),
                                     place, rope, input);
}

void Network::AddLayer(int layer) {
  const auto index = static_cast<std::size_t>(layer);
  const LayerConfig& config = config_.layers[index];
  const LayerWeights& weights = weights_.layers[index];
  const LayerPlace place = {.layer = layer,
                            .dim = config_.dim,
                            .norm_eps = config_.norm_eps,
                            .residual_scale = config.residual_scale,
                            .convolved = config.convolution.has_value()};
  Blocks& blocks = layers_.emplace_back();
  if (config.convolution) return AddConvolvedLayer(config, weights, place, blocks);
  if (!std::holds_alternative<NoPart>(config.mixer))
    blocks.push_back(MakeMixer(config, weights, place));
  if (config.beside)
    blocks.push_back(std::make_unique<Mamba2>(space_, *config.beside, *weights.beside, place));
  if (!std::holds_alternative<NoPart>(config.feed_forward))
    blocks.push_back(MakeFeedForward(space_, config, weights, place));
  if (weights.input)
    blocks.push_back(std::make_unique<PerLayerInput>(space_, config_, *weights.input, place));
  if (weights.output_scale != nullptr)
    blocks.push_back(std::make_unique<LayerScale>(space_, config_.dim, *weights.output_scale));
}

// REQUIRES: grouped-query attention and a gated part, and nothing else.
void Network::AddConvolvedLayer(const LayerConfig& config, const LayerWeights& weights,
                                const LayerPlace& place, Blocks& blocks) {
  const auto add = [&](const LocalConvolutionWeights& around, const LocalConvolution::Entry& entry,
                       std::unique_ptr<Block> part) {
    blocks.push_back(std::make_unique<LocalConvolution>(space_, *config.convolution, around, place,
                                                        entry, std::move(part)));
  };
  add(*weights.around_mixer, EntryOf(std::get<AttentionWeights>(weights.mixer)),
      MakeMixer(config, weights, place));
  add(*weights.around_feed_forward, EntryOf(std::get<GatedFfnWeights>(weights.feed_forward)),
      MakeFeedForward(space_, config, weights, place));
}

void Network::AddPhases() {
  phases_.clear();
  const auto keep = [this](int layer) {
    for (const Kept& kept : kept_)
      if (kept.layer == layer) kept.block->AddPhases(phases_);
  };
  for (const auto& block : entry_) block->AddPhases(phases_);
  for (int layer = 0; layer < config_.n_layers(); ++layer) {
    keep(layer);
    for (const auto& block : layers_[static_cast<std::size_t>(layer)]) block->AddPhases(phases_);
  }
  keep(config_.n_layers());
  if (states_ != nullptr) states_->AddPhases(phases_);
  output_.AddPhases(phases_);
  if (reduced_output_) reduced_output_->AddPhases(phases_);
  if (next_ != nullptr) next_->AddPhases(phases_);
  if (selector_ != nullptr) selector_->AddPhases(phases_);
  injection_phases_.clear();
  for (const auto& block : entry_) block->AddInjectionPhases(injection_phases_);
  transition_phases_.clear();
  if (!DraftsBlocks()) return;
  for (const Blocks& blocks : layers_)
    for (const auto& block : blocks) block->AddInjectionPhases(injection_phases_);
  if (transition_) transition_->AddPhases(transition_phases_);
}

const std::vector<Phase>& Network::PhasesOf(const Pass& pass) const noexcept {
  if (!DraftsBlocks() || pass.features == nullptr) return phases_;
  return pass.own_features ? transition_phases_ : injection_phases_;
}

const float* Network::OwnFeature(const Pass& pass, int i) const noexcept {
  if (next_ != nullptr) return next_->Row(i);
  if (!config_.head->feature_is_residual) return output_.last().Row(i);
  return space_.scratch.residual.View(config_.dim)
      .Row(pass.logit_rows[static_cast<std::size_t>(i)]);
}

Candidates Network::CandidatesOf(const Pass& pass) const noexcept {
  return selector_ == nullptr || pass.features != nullptr ? Candidates() : selector_->Result();
}

void Network::Keep(const FeatureRequest& request, float* features) {
  kept_.clear();
  const std::int64_t stride = std::int64_t{request.parts()} * config_.dim;
  const auto add = [&](int layer, const float* norm) {
    kept_.push_back({layer, std::make_unique<KeptState>(space_, config_.dim, norm, config_.norm_eps,
                                                        features, stride)});
    features += config_.dim;
  };
  for (const int layer : request.layers) add(layer, nullptr);
  if (request.normed) add(config_.n_layers(), weights_.output_norm);
  AddPhases();
}

void Network::Run(const Pass& pass, ThreadPool& pool, bool alone) noexcept {
  ExtendRopes(pass);
  NoteRowLengths(pass);
  space_.scratch.experts.n_distinct = 0;
  const std::vector<Phase>& phases = PhasesOf(pass);
  pool.Run([&](int thread) { Walk(phases, pass, thread, [&pool] { pool.Barrier(); }); }, alone);
}

// New positions come in strides of 32, so that decoding seldom pays for the tables.
void Network::ExtendRopes(const Pass& pass) noexcept {
  for (Rope& rope : ropes_)
    for (const kv::Segment& s : pass.segments) {
      const int end = (s.first_position + s.n_rows + 31) / 32 * 32;
      rope.table.Extend(std::min(end, max_positions_));
    }
}

void Network::NoteRowLengths(const Pass& pass) noexcept {
  std::int32_t* const lengths = space_.scratch.row_len.data();
  // The cache of an assistant's target does not have the row's own position.
  const int own = config_.head && config_.head->reads_cache ? 0 : 1;
  const auto* attention = std::get_if<AttentionConfig>(&config_.layers.front().mixer);
  const bool causal = attention == nullptr || attention->causal;
  for (const kv::Segment& s : pass.segments)
    for (int i = 0; i < s.n_rows; ++i)
      lengths[s.row_begin + i] = s.first_position + (causal ? i + own : s.n_rows);
}

}  // namespace foretoken::model
