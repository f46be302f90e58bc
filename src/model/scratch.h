// SPDX-License-Identifier: Apache-2.0
// model/scratch.h: the buffers a forward pass writes, taken once. Untouched rows cost no resident
// memory.
#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "model/config.h"

namespace foretoken::model {

// An activation in f32 and, for quantised weights, in int8 with a scale and two sums for each 32
// values.
struct Activation {
  AlignedBuffer<float> x;   // [max_rows, stride]
  std::int64_t stride = 0;  // width rounded up to 16: matmul writes whole tiles
  int width = 0;
  AlignedBuffer<std::int8_t> q;   // [max_rows, width]
  AlignedBuffer<float> d;         // [max_rows, width / 32]
  AlignedBuffer<std::int32_t> s;  // [max_rows, width / 32, 2]

  Activation() = default;
  Activation(int max_rows, int width);
  float* Row(int row) { return x.data() + row * stride; }
  const float* Row(int row) const { return x.data() + row * stride; }
};

struct Scratch {
  Activation residual;   // the stream: [rows, dim]
  Activation normed;     // [rows, dim]
  Activation q, k, v;    // [rows, heads * head_dim] ...
  Activation attention;  // [rows, heads * head_dim]
  Activation gate;       // [rows, ff]; silu(gate) * up lands here
  Activation up;         // [rows, ff]
  Activation last;       // [logit rows, dim]
  Activation mixed;      // heads: [rows, features], the target's features before fc
  Activation pair;       // heads: [rows, 2 dim], embedding and feature, each normed
  AlignedBuffer<float> logits;
  std::int64_t logits_stride = 0;
  AlignedBuffer<std::uint8_t> not_finite;  // [threads, max_logit_rows]: in a thread's part of a row
  std::int64_t not_finite_stride = 0;
  AlignedBuffer<float> attention_scratch;  // [threads, attention_scratch_stride]
  std::int64_t attention_scratch_stride = 0;
  AlignedBuffer<std::int32_t> row_len;  // [max_rows]: positions a row sees

  Scratch(const ModelConfig& config, int max_rows, int max_logit_rows, int n_threads);
};

}  // namespace foretoken::model
