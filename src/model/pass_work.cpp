// SPDX-License-Identifier: Apache-2.0
#include "model/pass_work.h"

#include <algorithm>
#include <variant>

namespace foretoken::model {
namespace {

std::int64_t RowWork(const AttentionConfig& a, int dim) {
  return std::int64_t{dim} * (2 * a.head_dim * (a.n_heads + a.n_kv_heads));
}
std::int64_t RowWork(const LatentAttentionConfig& a, int dim) {
  const std::int64_t queries = std::int64_t{a.n_heads} * a.query_dim(),
                     by_head = std::int64_t{a.rank} * (a.head_dim + a.value_dim);
  const std::int64_t q = a.q_rank == 0 ? dim * queries : a.q_rank * (dim + queries);
  return q + a.n_heads * by_head + std::int64_t{dim} * (a.key_dim() + a.n_heads * a.value_dim);
}
std::int64_t RowWork(const ShortConvConfig&, int dim) {
  return 4 * std::int64_t{dim} * dim;
}
std::int64_t RowWork(const DeltaNetConfig& d, int dim) {
  const std::int64_t states = std::int64_t{3} * d.value_dim() * d.head_dim;
  return std::int64_t{dim} * (d.convolved() + 2 * d.value_dim() + 2 * d.n_value_heads) + states;
}
std::int64_t RowWork(const Mamba2Config& m, int dim) {
  const std::int64_t states = std::int64_t{2} * m.inner() * m.state_size;
  return std::int64_t{dim} * (m.kept() + 2 * m.inner()) + states;
}
std::int64_t RowWork(const NoPart&, int) {
  return 0;
}
std::int64_t RowWork(const GatedFfnConfig& f, int dim) {
  return std::int64_t{dim} * (3 * f.width);
}
std::int64_t RowWork(const ExpertsConfig& e, int dim) {
  return std::int64_t{dim} *
         (e.n_experts + 3 * (std::int64_t{e.n_used} * e.width + e.shared_width));
}
std::int64_t RowWork(const LocalConvolutionConfig& c, int dim) {
  return 2 * std::int64_t{dim} * (c.coefficients(dim) + 2 * c.taps);
}

std::int64_t RowWork(const LayerConfig& layer, int layer_input, int dim) {
  const auto of = [dim](const auto& part) { return RowWork(part, dim); };
  std::int64_t work = std::int64_t{3} * layer_input * dim;
  work += std::visit(of, layer.mixer) + std::visit(of, layer.feed_forward);
  if (layer.beside) work += of(*layer.beside);
  if (layer.dense_part) work += of(*layer.dense_part);
  if (layer.convolution) work += of(*layer.convolution);
  return work;
}

// Multiplications of one row with the key and the value of one position.
std::int64_t PositionWork(const MixerConfig& mixer) {
  if (const auto* latent = std::get_if<LatentAttentionConfig>(&mixer))
    return std::int64_t{latent->n_heads} * (latent->key_dim() + latent->rank);
  if (const auto* grouped = std::get_if<AttentionConfig>(&mixer))
    return std::int64_t{2} * grouped->n_heads * grouped->head_dim;
  return 0;
}

// A block drafter that reads features computes keys and values, and nothing else.
std::int64_t InjectedRowWork(const ModelConfig& config) {
  if (!config.head || !config.head->drafts_blocks()) return 0;
  const AttentionConfig& a = config.layers.front().attention();
  const int mixed = config.head->features_width() / config.n_layers();
  return std::int64_t{config.dim} * (2 * a.n_kv_heads * a.head_dim + mixed);
}

}  // namespace

PassWork::PassWork(const ModelConfig& config)
    : n_layers_(std::max(1, config.n_layers())), injected_row_(InjectedRowWork(config)) {
  for (const LayerConfig& layer : config.layers) {
    row_ += RowWork(layer, config.layer_input, config.dim);
    AddSeen(layer);
  }
}

void PassWork::AddSeen(const LayerConfig& layer) {
  const std::int64_t work = PositionWork(layer.mixer);
  if (work == 0) return;
  const int window = layer.window();
  const auto same =
      std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.window == window; });
  if (same == seen_.end())
    seen_.push_back({window, work});
  else
    same->position += work;
}

std::uint64_t PassWork::Of(const Pass& pass) const noexcept {
  const std::int64_t n_rows = pass.n_rows();
  if (injected_row_ != 0 && pass.features != nullptr)
    return static_cast<std::uint64_t>(n_rows * injected_row_);
  return static_cast<std::uint64_t>((n_rows * row_ + OfPositions(pass)) / n_layers_);
}

std::int64_t PassWork::OfPositions(const Pass& pass) const noexcept {
  std::int64_t work = 0;
  for (const kv::Segment& s : pass.segments) {
    const int length = s.first_position + (s.n_rows + 1) / 2;
    const int skipped = std::max(0, pass.SkippedBlocks(length) - pass.best_blocks);
    for (const Seen& seen : seen_) {
      const int positions = seen.window == 0 ? length - skipped * tensor::kKvBlock
                                             : std::min(length, pass.WindowOf(seen.window));
      work += seen.position * s.n_rows * positions;
    }
  }
  return work;
}

}  // namespace foretoken::model
