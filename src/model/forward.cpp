// SPDX-License-Identifier: Apache-2.0
#include "model/forward.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken::model {
namespace {

constexpr int kBlock = tensor::kBlock;

}  // namespace

void ForwardPass::Run(bool alone) noexcept {
  for (const kv::Segment& segment : pass_.segments)
    for (int i = 0; i < segment.n_rows; ++i)
      scratch_.row_len[static_cast<std::size_t>(segment.row_begin + i)] =
          segment.first_position + i + 1;
  pool_.Run([this](int thread) { Thread(thread); }, alone);
}

void ForwardPass::Thread(int thread) noexcept {
  const bool eagle = config_.head && config_.head->kind == HeadKind::kEagle;
  if (eagle)
    EnterEagle(thread);
  else if (config_.head)
    EnterMtp(thread);
  else
    Embed(thread);
  for (int i = 0; i < config_.n_layers; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(i)];
    const bool quantise = layer.q.quantised() || layer.k.quantised() || layer.v.quantised();
    Keep(i, thread);
    if (!eagle) Norm(layer.attention_norm, scratch_.normed, quantise, thread);
    Sync();
    ProjectQkv(layer, eagle ? scratch_.pair : scratch_.normed, thread);
    Sync();
    Attend(i, layer, thread);
    Sync();
    MultiplyShare(layer.o, scratch_.attention, scratch_.residual, true, thread);
    Sync();
    Norm(layer.ffn_norm, scratch_.normed, layer.gate.quantised() || layer.up.quantised(), thread);
    Sync();
    GateUp(layer, thread);
    Sync();
    MultiplyShare(layer.down, scratch_.gate, scratch_.residual, true, thread);
    Sync();
  }
  Keep(config_.n_layers, thread);
  KeepNormed(thread);
  Output(thread);
}

// Rows are split as Norm splits them: a thread copies what it wrote itself, or what a Sync gave it.
void ForwardPass::Keep(int layer, int thread) noexcept {
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  for (std::size_t part = 0; part < feature_request_.layers.size(); ++part) {
    if (feature_request_.layers[part] != layer) continue;
    for (int row = share.begin; row < share.end; ++row)
      std::copy_n(scratch_.residual.Row(row), config_.dim,
                  features_ + (std::int64_t{row} * feature_request_.parts() +
                               static_cast<std::int64_t>(part)) *
                                  config_.dim);
  }
}

void ForwardPass::KeepNormed(int thread) noexcept {
  if (!feature_request_.normed) return;
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  for (int row = share.begin; row < share.end; ++row)
    kernels_.rms_norm(
        scratch_.residual.Row(row), weights_.output_norm, config_.dim, config_.norm_eps,
        features_ + (std::int64_t{row + 1} * feature_request_.parts() - 1) * config_.dim);
}

// pair = [norm(embedding), norm(feature)]
void ForwardPass::PairRow(int row, const float* feature) noexcept {
  float* pair = scratch_.pair.Row(row);
  // The embedding passes through `normed`, which the block writes later.
  float* embedding = scratch_.normed.Row(row);
  weights_.Embed(pass_.tokens[static_cast<std::size_t>(row)], embedding);
  kernels_.rms_norm(embedding, weights_.head->token_norm, config_.dim, config_.norm_eps, pair);
  kernels_.rms_norm(feature, weights_.head->feature_norm, config_.dim, config_.norm_eps,
                    pair + config_.dim);
}

void ForwardPass::EnterEagle(int thread) noexcept {
  const HeadWeights& head = *weights_.head;
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  Activation& residual = scratch_.residual;
  if (pass_.own_features) {
    for (int row = share.begin; row < share.end; ++row)
      std::copy_n(pass_.features + std::int64_t{row} * config_.dim, config_.dim, residual.Row(row));
  } else {
    Activation& mixed = scratch_.mixed;
    for (int row = share.begin; row < share.end; ++row) {
      const float* features = pass_.features + std::int64_t{row} * mixed.width;
      if (head.features_norm != nullptr)
        kernels_.rms_norm(features, head.features_norm, mixed.width, config_.norm_eps,
                          mixed.Row(row));
      else
        std::copy_n(features, mixed.width, mixed.Row(row));
    }
    if (head.mix.quantised())
      QuantiseColumns(mixed, share.begin, share.end - share.begin, 0, mixed.width);
    Sync();
    MultiplyShare(head.mix, mixed, residual, false, thread);
    Sync();
  }
  for (int row = share.begin; row < share.end; ++row) {
    PairRow(row, residual.Row(row));
    if (config_.head->norm_before_residual)
      std::copy_n(scratch_.pair.Row(row) + config_.dim, config_.dim, residual.Row(row));
  }
  const LayerWeights& layer = weights_.layers[0];
  if (layer.q.quantised() || layer.k.quantised() || layer.v.quantised())
    QuantiseColumns(scratch_.pair, share.begin, share.end - share.begin, 0, scratch_.pair.width);
}

void ForwardPass::EnterMtp(int thread) noexcept {
  const Linear& mix = weights_.head->mix;
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  for (int row = share.begin; row < share.end; ++row)
    PairRow(row, pass_.features + std::int64_t{row} * config_.dim);
  if (mix.quantised())
    QuantiseColumns(scratch_.pair, share.begin, share.end - share.begin, 0, scratch_.pair.width);
  Sync();
  MultiplyShare(mix, scratch_.pair, scratch_.residual, false, thread);
  Sync();
}

void ForwardPass::Embed(int thread) noexcept {
  // The same split by rows as Norm: a thread reads what it wrote, so no Sync stands between.
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  for (int row = share.begin; row < share.end; ++row)
    weights_.Embed(pass_.tokens[static_cast<std::size_t>(row)], scratch_.residual.Row(row));
}

void ForwardPass::Norm(const float* weight, Activation& out, bool quantise, int thread) noexcept {
  const auto share = pool_.ShareOf(pass_.n_rows(), thread);
  for (int row = share.begin; row < share.end; ++row)
    kernels_.rms_norm(scratch_.residual.Row(row), weight, config_.dim, config_.norm_eps,
                      out.Row(row));
  if (quantise) QuantiseColumns(out, share.begin, share.end - share.begin, 0, out.width);
}

void ForwardPass::QuantiseColumns(Activation& a, int row_begin, int n_rows, int begin,
                                  int end) noexcept {
  if (begin >= end) return;
  const std::int64_t blocks = a.width / kBlock;
  for (int row = row_begin; row < row_begin + n_rows; ++row)
    kernels_.quantize(a.Row(row) + begin, a.stride, 1, end - begin,
                      a.q.data() + static_cast<std::int64_t>(row) * a.width + begin,
                      a.d.data() + row * blocks + begin / kBlock,
                      a.s.data() + 2 * (row * blocks + begin / kBlock));
}

void ForwardPass::Multiply(const Linear& w, const Activation& x, int n_rows, float* y,
                           std::int64_t y_stride, bool accumulate, int tile_begin,
                           int tile_end) noexcept {
  if (tile_begin >= tile_end || n_rows == 0) return;
  const kernels::MatmulArgs args = {.tiles = w.tiles,
                                    .k = w.k,
                                    .tile_begin = tile_begin,
                                    .tile_end = tile_end,
                                    .n_rows = n_rows,
                                    .x = x.x.data(),
                                    .x_stride = x.stride,
                                    .xq = x.q.data(),
                                    .xd = x.d.data(),
                                    .xs = x.s.data(),
                                    .y = y,
                                    .y_stride = y_stride,
                                    .accumulate = accumulate};
  kernels_.matmul[static_cast<std::size_t>(w.type)](args);
}

void ForwardPass::MultiplyShare(const Linear& w, const Activation& x, Activation& y,
                                bool accumulate, int thread) noexcept {
  const auto share = pool_.ShareOf(w.n_tiles, thread);
  Multiply(w, x, pass_.n_rows(), y.x.data(), y.stride, accumulate, share.begin, share.end);
}

void ForwardPass::ProjectQkv(const LayerWeights& layer, const Activation& input,
                             int thread) noexcept {
  // The three matrices as one range of tiles, so that each thread gets an even part of the whole.
  const auto share = pool_.ShareOf(layer.q.n_tiles + layer.k.n_tiles + layer.v.n_tiles, thread);
  int first = 0;
  const auto part = [&](const Linear& w, Activation& y) {
    const int begin = std::clamp(share.begin - first, 0, w.n_tiles),
              end = std::clamp(share.end - first, 0, w.n_tiles);
    Multiply(w, input, pass_.n_rows(), y.x.data(), y.stride, false, begin, end);
    first += w.n_tiles;
  };
  part(layer.q, scratch_.q);
  part(layer.k, scratch_.k);
  part(layer.v, scratch_.v);
}

void ForwardPass::Attend(int layer, const LayerWeights& weights, int thread) noexcept {
  const int n_heads = config_.n_kv_heads;
  const auto share = pool_.ShareOf(static_cast<int>(pass_.segments.size()) * n_heads, thread);
  for (int job = share.begin; job < share.end; ++job)
    AttendHead(layer, weights, pass_.segments[static_cast<std::size_t>(job / n_heads)],
               job % n_heads, thread);
  if (!weights.o.quantised()) return;
  // Where a head group does not fill whole blocks, a block's columns come from several jobs: meet
  // before quantising it.
  const int group = config_.n_heads / n_heads * config_.head_dim;
  if (group % kBlock == 0) return;
  Sync();
  const auto columns = pool_.ShareOf(scratch_.attention.width, thread, kBlock);
  QuantiseColumns(scratch_.attention, 0, pass_.n_rows(), columns.begin, columns.end);
}

// Bias, norm and rotation of one row's key of this head and the queries that share it.
void ForwardPass::PrepareRow(const LayerWeights& weights, int row, Pos position,
                             int head) noexcept {
  const int head_dim = config_.head_dim, n_group = config_.n_heads / config_.n_kv_heads;
  const auto prepare = [&](float* x, int n_heads, const float* bias, const float* norm) {
    if (bias != nullptr)
      for (int i = 0; i < n_heads * head_dim; ++i) x[i] += bias[i];
    if (norm != nullptr)
      for (int h = 0; h < n_heads; ++h)
        kernels_.rms_norm(x + h * head_dim, norm, head_dim, config_.norm_eps, x + h * head_dim);
    kernels_.rope(x, n_heads, head_dim, config_.rope.n_rot, config_.rope.interleaved,
                  rope_.Cos(position), rope_.Sin(position));
  };
  const int q_at = head * n_group * head_dim, k_at = head * head_dim;
  prepare(scratch_.q.Row(row) + q_at, n_group,
          weights.q_bias == nullptr ? nullptr : weights.q_bias + q_at, weights.q_norm);
  prepare(scratch_.k.Row(row) + k_at, 1,
          weights.k_bias == nullptr ? nullptr : weights.k_bias + k_at, weights.k_norm);
  if (weights.v_bias != nullptr)
    for (int i = 0; i < head_dim; ++i) scratch_.v.Row(row)[k_at + i] += weights.v_bias[k_at + i];
}

void ForwardPass::AttendHead(int layer, const LayerWeights& weights, const kv::Segment& segment,
                             int head, int thread) noexcept {
  const int head_dim = config_.head_dim, n_group = config_.n_heads / config_.n_kv_heads;
  const auto view = cache_.Head(layer, head);
  const auto blocks = segment.blocks;
  const CacheOptions& types = cache_.options();
  for (int i = 0; i < segment.n_rows; ++i) {
    const int row = segment.row_begin + i;
    const Pos position = segment.first_position + i;
    PrepareRow(weights, row, position, head);
    const auto block =
        static_cast<std::size_t>(blocks[static_cast<std::size_t>(position / tensor::kKvBlock)]);
    const int slot = position % tensor::kKvBlock;
    kernels_.store_k[static_cast<std::size_t>(types.k_type)](
        scratch_.k.Row(row) + head * head_dim, head_dim, slot, view.k + block * view.k_stride);
    kernels_.store_v[static_cast<std::size_t>(types.v_type)](
        scratch_.v.Row(row) + head * head_dim, head_dim, slot, view.v + block * view.v_stride);
  }
  const int at = head * n_group * head_dim;
  const kernels::AttentionArgs args = {
      .q = scratch_.q.Row(segment.row_begin) + at,
      .q_stride = scratch_.q.stride,
      .out = scratch_.attention.Row(segment.row_begin) + at,
      .out_stride = scratch_.attention.stride,
      .n_rows = segment.n_rows,
      .n_group = n_group,
      .head_dim = head_dim,
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))),
      .row_len = scratch_.row_len.data() + segment.row_begin,
      .blocks = blocks.data(),
      .k = view.k,
      .k_stride = view.k_stride,
      .v = view.v,
      .v_stride = view.v_stride,
      .k_type = types.k_type,
      .v_type = types.v_type,
      .scratch = scratch_.attention_scratch.data() + thread * scratch_.attention_scratch_stride};
  kernels_.attention(args);
  if (weights.o.quantised() && n_group * head_dim % kBlock == 0)
    QuantiseColumns(scratch_.attention, segment.row_begin, segment.n_rows, at,
                    at + n_group * head_dim);
}

void ForwardPass::GateUp(const LayerWeights& layer, int thread) noexcept {
  // A thread computes the same columns of both matrices, whole blocks of them, and so can finish
  // them alone.
  Activation &gate = scratch_.gate, &up = scratch_.up;
  const auto share = pool_.ShareOf(layer.gate.n_tiles, thread, kBlock / tensor::kTileOutputs);
  const int rows = pass_.n_rows();
  Multiply(layer.gate, scratch_.normed, rows, gate.x.data(), gate.stride, false, share.begin,
           share.end);
  Multiply(layer.up, scratch_.normed, rows, up.x.data(), up.stride, false, share.begin, share.end);
  const int begin = share.begin * tensor::kTileOutputs,
            end = std::min(share.end * tensor::kTileOutputs, config_.ff);
  if (begin >= end) return;
  for (int row = 0; row < rows; ++row)
    kernels_.silu_mul(gate.Row(row) + begin, up.Row(row) + begin, end - begin,
                      gate.Row(row) + begin);
  if (layer.down.quantised()) QuantiseColumns(gate, 0, rows, begin, end);
}

void ForwardPass::Output(int thread) noexcept {
  const int n = static_cast<int>(pass_.logit_rows.size());
  if (n == 0) return;
  Activation& last = scratch_.last;
  const auto share = pool_.ShareOf(n, thread);
  for (int i = share.begin; i < share.end; ++i)
    kernels_.rms_norm(scratch_.residual.Row(pass_.logit_rows[static_cast<std::size_t>(i)]),
                      weights_.output_norm, config_.dim, config_.norm_eps, last.Row(i));
  if (weights_.output.quantised())
    QuantiseColumns(last, share.begin, share.end - share.begin, 0, last.width);
  Sync();
  const auto tiles = pool_.ShareOf(weights_.output.n_tiles, thread);
  Multiply(weights_.output, last, n, scratch_.logits.data(), scratch_.logits_stride, false,
           tiles.begin, tiles.end);
  // While they are in this core's cache.
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, config_.vocabulary);
  std::uint8_t* const not_finite = scratch_.not_finite.data() + thread * scratch_.not_finite_stride;
  for (int i = 0; i < n; ++i)
    not_finite[i] = begin < end &&
                    kernels_.finiteness(scratch_.logits.data() + i * scratch_.logits_stride + begin,
                                        end - begin) != kernels::Finiteness::kFinite;
}

}  // namespace foretoken::model
