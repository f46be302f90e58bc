// SPDX-License-Identifier: Apache-2.0
#include "model/memory/state_memory.h"

#include <algorithm>

#include "kv/segment.h"

namespace foretoken::model {
namespace {

int CopiedRingOf(const StateLayer& layer) {
  return layer.seen + kv::kCopiedInputs;
}

int RingOf(const StateLayer& layer, const StateOptions& options) {
  return layer.seen + options.rows;
}

// In whole cache lines: the numbers of a state and of so many inputs.
std::int64_t StrideOf(const StateLayer& layer, int n_inputs) {
  return (layer.state + std::int64_t{layer.input} * n_inputs + 15) / 16 * 16;
}

}  // namespace

std::size_t StateMemory::CheckpointBytes(std::span<const StateLayer> layers,
                                         const StateOptions& options) {
  std::int64_t numbers = 0;
  for (const StateLayer& layer : layers)
    numbers += options.n_checkpoints * StrideOf(layer, CopiedRingOf(layer));
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

std::size_t StateMemory::Bytes(std::span<const StateLayer> layers, const StateOptions& options) {
  std::int64_t numbers = 0;
  for (const StateLayer& layer : layers)
    numbers += options.n_sequences * StrideOf(layer, RingOf(layer, options));
  return static_cast<std::size_t>(numbers) * sizeof(float) + CheckpointBytes(layers, options);
}

StateMemory::StateMemory(std::span<const StateLayer> layers, const StateOptions& options)
    : n_checkpoints_(options.n_checkpoints), memory_(Bytes(layers, options) / sizeof(float)) {
  std::int64_t begin = 0;
  for (const StateLayer& layer : layers) {
    const std::int64_t stride = StrideOf(layer, RingOf(layer, options));
    layers_.push_back({.begin = begin,
                       .stride = stride,
                       .copy_stride = StrideOf(layer, CopiedRingOf(layer)),
                       .state = layer.state,
                       .input = layer.input,
                       .ring = RingOf(layer, options),
                       .seen = layer.seen});
    begin += options.n_sequences * stride;
  }
  for (Layer& layer : layers_) {
    layer.first_copy = begin;
    begin += options.n_checkpoints * layer.copy_stride;
  }
}

template <typename Copy>
void StateMemory::ForEachPart(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool, int thread,
                              Copy&& copy) noexcept {
  for (const Layer& layer : layers_) {
    float* const own = At(layer, seq);
    float* const copied = memory_.data() + layer.first_copy + checkpoint * layer.copy_stride;
    const auto state = pool.ShareOf(static_cast<int>(layer.state), thread, 16);
    copy(own + state.begin, copied + state.begin, state.end - state.begin);
    const auto input = pool.ShareOf(static_cast<int>(layer.input), thread, 16);
    const int copied_ring = layer.seen + kv::kCopiedInputs;
    for (Pos p = std::max(0, at - layer.seen); p < at + kv::kCopiedInputs; ++p)
      copy(own + layer.state + p % layer.ring * layer.input + input.begin,
           copied + layer.state + p % copied_ring * layer.input + input.begin,
           input.end - input.begin);
  }
}

void StateMemory::AddParts(int checkpoint, std::vector<std::span<std::byte>>& parts) noexcept {
  for (const Layer& layer : layers_)
    if (layer.copy_stride != 0)
      parts.push_back(std::as_writable_bytes(
          std::span(memory_.data() + layer.first_copy + checkpoint * layer.copy_stride,
                    static_cast<std::size_t>(layer.copy_stride))));
}

void StateMemory::Save(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool,
                       int thread) noexcept {
  ForEachPart(seq, at, checkpoint, pool, thread,
              [](const float* own, float* copied, int n) { std::copy_n(own, n, copied); });
}

void StateMemory::Restore(SeqId seq, Pos at, int checkpoint, const ThreadPool& pool,
                          int thread) noexcept {
  ForEachPart(seq, at, checkpoint, pool, thread,
              [](float* own, const float* copied, int n) { std::copy_n(copied, n, own); });
}

}  // namespace foretoken::model
