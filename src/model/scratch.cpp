// SPDX-License-Identifier: Apache-2.0
#include "model/scratch.h"

#include "kernels/kernels.h"
#include "tensor/block_layout.h"

namespace foretoken::model {
namespace {

std::int64_t RoundUp(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

Activation::Activation(int max_rows, int row_width)
    : stride(RoundUp(row_width, 16)), width(row_width) {
  const auto rows = static_cast<std::size_t>(max_rows);
  x = AlignedBuffer<float>(rows * static_cast<std::size_t>(stride));
  if (width % tensor::kBlock != 0) return;
  q = AlignedBuffer<std::int8_t>(rows * static_cast<std::size_t>(width));
  d = AlignedBuffer<float>(rows * static_cast<std::size_t>(width / tensor::kBlock));
  s = AlignedBuffer<std::int32_t>(rows * static_cast<std::size_t>(width / tensor::kBlock) * 2);
}

Scratch::Scratch(const ModelConfig& c, int max_rows, int max_logit_rows, int n_threads)
    : residual(max_rows, c.dim),
      normed(max_rows, c.dim),
      q(max_rows, c.n_heads * c.head_dim),
      k(max_rows, c.n_kv_heads * c.head_dim),
      v(max_rows, c.n_kv_heads * c.head_dim),
      attention(max_rows, c.n_heads * c.head_dim),
      gate(max_rows, c.ff),
      up(max_rows, c.ff),
      last(max_logit_rows, c.dim),
      logits_stride(RoundUp(c.vocabulary, 16)),
      attention_scratch_stride(
          RoundUp(static_cast<std::int64_t>(kernels::AttentionScratchFloats(c.head_dim)), 32)),
      row_len(static_cast<std::size_t>(max_rows)) {
  if (c.head) {
    pair = Activation(max_rows, 2 * c.dim);
    if (c.head->kind == HeadKind::kEagle)
      mixed = Activation(max_rows,
                         static_cast<int>(c.head->feature_layers.size()) * c.head->target_dim);
  }
  logits = AlignedBuffer<float>(static_cast<std::size_t>(max_logit_rows) *
                                static_cast<std::size_t>(logits_stride));
  not_finite_stride = RoundUp(max_logit_rows, 64);  // threads write no cache line of another one
  not_finite = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(n_threads) *
                                           static_cast<std::size_t>(not_finite_stride));
  attention_scratch = AlignedBuffer<float>(static_cast<std::size_t>(n_threads) *
                                           static_cast<std::size_t>(attention_scratch_stride));
}

}  // namespace foretoken::model
