// SPDX-License-Identifier: Apache-2.0
#include "model/memory/cache_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

std::size_t KeyBytes(const CacheLayer& layer, const CacheOptions& options) {
  return tensor::KvBlockBytes(options.k_type, layer.head_dim);
}
std::size_t ValueBytes(const CacheLayer& layer, const CacheOptions& options) {
  return layer.values_in_keys ? 0 : tensor::KvBlockBytes(options.v_type, layer.head_dim);
}

// Blocks of all heads of a layer.
std::size_t BlocksOf(const CacheLayer& layer, const CacheOptions& options) {
  return static_cast<std::size_t>(layer.n_kv_heads) *
         static_cast<std::size_t>(layer.Blocks(options));
}

Status CheckHeadSize(const CacheLayer& layer, const CacheOptions& options) {
  const int head_dim = layer.head_dim;
  const bool scales = tensor::HasScales(options.k_type) ||
                      (tensor::HasScales(options.v_type) && !layer.values_in_keys);
  if (head_dim % (scales ? 32 : 8) == 0) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("cache: head size {} is not a multiple of {}; {}", head_dim, scales ? 32 : 8,
                  scales ? "use EngineOptions::cache_type_k f16 and EngineOptions::cache_type_v f16"
                         : "this model cannot run here"));
}

}  // namespace

std::size_t CacheMemory::Bytes(std::span<const CacheLayer> layers, const CacheOptions& options) {
  std::size_t bytes = 0;
  for (const CacheLayer& layer : layers)
    bytes += (KeyBytes(layer, options) + ValueBytes(layer, options)) * BlocksOf(layer, options);
  return bytes + (options.key_bounds ? KeyBounds::Bytes(layers, options.n_blocks) : 0);
}

Result<CacheMemory> CacheMemory::Create(std::span<const CacheLayer> layers,
                                        const CacheOptions& options) {
  CacheMemory memory;
  memory.options_ = options;
  memory.layers_.reserve(layers.size());
  std::size_t k_bytes = 0, v_bytes = 0;
  for (const CacheLayer& layer : layers) {
    FORETOKEN_CHECK_OK(CheckHeadSize(layer, options));
    memory.layers_.push_back({.n_kv_heads = layer.n_kv_heads,
                              .n_blocks = layer.Blocks(options),
                              .k_begin = k_bytes,
                              .v_begin = v_bytes,
                              .k_block_bytes = KeyBytes(layer, options),
                              .v_block_bytes = ValueBytes(layer, options)});
    k_bytes += KeyBytes(layer, options) * BlocksOf(layer, options);
    v_bytes += ValueBytes(layer, options) * BlocksOf(layer, options);
  }
  memory.k_ = AlignedBytes(k_bytes);
  memory.v_ = AlignedBytes(v_bytes);
  if (options.key_bounds) memory.bounds_ = KeyBounds(layers, options.n_blocks);
  return memory;
}

CacheMemory::HeadView CacheMemory::Head(int layer, int head) noexcept {
  const Layer& l = layers_[static_cast<std::size_t>(layer)];
  const auto block = static_cast<std::size_t>(head) * static_cast<std::size_t>(l.n_blocks);
  return {k_.data() + l.k_begin + block * l.k_block_bytes,
          v_.data() + l.v_begin + block * l.v_block_bytes, l.k_block_bytes, l.v_block_bytes};
}

void CacheMemory::Copy(std::int32_t from, std::int32_t to, bool windowed) noexcept {
  const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
  if (!windowed) bounds_.Forget(to);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if ((layers_[layer].n_blocks != options_.n_blocks) != windowed) continue;
    for (int head = 0; head < layers_[layer].n_kv_heads; ++head) {
      const HeadView view = Head(static_cast<int>(layer), head);
      std::memcpy(view.k + target * view.k_stride, view.k + source * view.k_stride, view.k_stride);
      if (view.v_stride != 0)
        std::memcpy(view.v + target * view.v_stride, view.v + source * view.v_stride,
                    view.v_stride);
    }
  }
}

void CacheMemory::AddParts(std::int32_t block, std::vector<std::span<std::byte>>& parts) noexcept {
  const auto index = static_cast<std::size_t>(block);
  bounds_.Forget(block);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (int head = 0; head < layers_[layer].n_kv_heads; ++head) {
      const HeadView view = Head(static_cast<int>(layer), head);
      if (layers_[layer].n_blocks != options_.n_blocks) continue;
      parts.emplace_back(view.k + index * view.k_stride, view.k_stride);
      if (view.v_stride != 0) parts.emplace_back(view.v + index * view.v_stride, view.v_stride);
    }
}

void CacheMemory::Clear(std::span<const std::int32_t> blocks) noexcept {
  for (const std::int32_t block : blocks) bounds_.Forget(block);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (int head = 0; head < layers_[layer].n_kv_heads; ++head) {
      const HeadView view = Head(static_cast<int>(layer), head);
      if (layers_[layer].n_blocks != options_.n_blocks) {
        const auto n = static_cast<std::size_t>(layers_[layer].n_blocks);
        std::memset(view.k, 0, n * view.k_stride);
        if (view.v_stride != 0) std::memset(view.v, 0, n * view.v_stride);
        continue;
      }
      for (const std::int32_t block : blocks) {
        const auto index = static_cast<std::size_t>(block);
        std::memset(view.k + index * view.k_stride, 0, view.k_stride);
        if (view.v_stride != 0) std::memset(view.v + index * view.v_stride, 0, view.v_stride);
      }
    }
}

}  // namespace foretoken::model
