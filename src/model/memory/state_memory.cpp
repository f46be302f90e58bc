// SPDX-License-Identifier: Apache-2.0
#include "model/memory/state_memory.h"

namespace foretoken::model {
namespace {

int RingOf(const StateLayer& layer, const StateOptions& options) {
  return layer.seen + options.rows;
}

// In whole cache lines.
std::int64_t StrideOf(const StateLayer& layer, const StateOptions& options) {
  const std::int64_t numbers = layer.state + std::int64_t{layer.input} * RingOf(layer, options);
  return (numbers + 15) / 16 * 16;
}

}  // namespace

std::size_t StateMemory::Bytes(std::span<const StateLayer> layers, const StateOptions& options) {
  std::int64_t numbers = 0;
  for (const StateLayer& layer : layers) numbers += options.n_sequences * StrideOf(layer, options);
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

StateMemory::StateMemory(std::span<const StateLayer> layers, const StateOptions& options)
    : memory_(Bytes(layers, options) / sizeof(float)) {
  std::int64_t begin = 0;
  for (const StateLayer& layer : layers) {
    const std::int64_t stride = StrideOf(layer, options);
    layers_.push_back({.begin = begin,
                       .stride = stride,
                       .state = layer.state,
                       .input = layer.input,
                       .ring = RingOf(layer, options)});
    begin += options.n_sequences * stride;
  }
}

}  // namespace foretoken::model
