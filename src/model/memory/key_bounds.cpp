// SPDX-License-Identifier: Apache-2.0
#include "model/memory/key_bounds.h"

#include <algorithm>

#include "model/memory/cache_memory.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr int kTileBlocks = tensor::kTileOutputs;

bool HasBounds(const CacheLayer& layer) {
  return layer.n_kv_heads > 0 && !layer.windowed && !layer.values_in_keys;
}

std::size_t NumbersOfAHead(const CacheLayer& layer, int n_blocks) {
  const int tiles = (n_blocks + kTileBlocks - 1) / kTileBlocks;
  return static_cast<std::size_t>(tiles) *
         static_cast<std::size_t>(2 * layer.head_dim * kTileBlocks);
}

}  // namespace

std::size_t KeyBounds::Bytes(std::span<const CacheLayer> layers, int n_blocks) {
  std::size_t numbers = 0;
  for (const CacheLayer& layer : layers)
    if (HasBounds(layer))
      numbers += NumbersOfAHead(layer, n_blocks) * static_cast<std::size_t>(layer.n_kv_heads);
  return numbers * sizeof(std::uint16_t) + static_cast<std::size_t>(n_blocks);
}

KeyBounds::KeyBounds(std::span<const CacheLayer> layers, int n_blocks)
    : known_(static_cast<std::size_t>(n_blocks)) {
  std::size_t numbers = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const CacheLayer& layer = layers[l];
    first_head_.push_back(HasBounds(layer) ? n_heads() : -1);
    if (!HasBounds(layer)) continue;
    for (int head = 0; head < layer.n_kv_heads; ++head) {
      heads_.push_back({static_cast<int>(l), head, layer.head_dim, numbers});
      numbers += NumbersOfAHead(layer, n_blocks);
    }
    head_dim_ = std::max(head_dim_, layer.head_dim);
  }
  tiles_ = AlignedBuffer<std::uint16_t>(numbers);
}

const std::uint16_t* KeyBounds::Of(int layer, int head) const noexcept {
  if (!kept()) return nullptr;
  const int first = first_head_[static_cast<std::size_t>(layer)];
  return first < 0 ? nullptr : tiles_.data() + HeadAt(first + head).begin;
}

void KeyBounds::Learn(int i, std::int32_t block, const std::byte* keys, tensor::KvType type,
                      const kernels::Kernels& kernels, float* work) noexcept {
  const auto [layer, head, dim, begin] = HeadAt(i);
  float *const least = work, *const most = least + dim;
  kernels.bound_keys[static_cast<std::size_t>(type)](keys, dim, least, most);
  std::uint16_t* const tile =
      tiles_.data() + begin +
      static_cast<std::size_t>(block / kTileBlocks * 2 * dim * kTileBlocks) +
      static_cast<std::size_t>(block % kTileBlocks);
  for (int d = 0; d < dim; ++d) {
    tile[d * kTileBlocks] = tensor::F32ToF16(most[d]);
    tile[(dim + d) * kTileBlocks] = tensor::F32ToF16(least[d]);
  }
}

}  // namespace foretoken::model
