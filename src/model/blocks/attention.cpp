// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/blocks/attend.h"

namespace foretoken::model {

Attention::Attention(const Workspace& space, const AttentionConfig& config,
                     const AttentionWeights& weights, const LayerPlace& place,
                     const RopeTable* rope, const Activation& input)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      rope_(rope),
      own_(OwnHeads(config, space.division)),
      group_(config.n_heads / config.n_kv_heads),
      quantise_input_(weights.q.quantised() || weights.k.quantised() || weights.v.quantised()),
      own_blocks_(config.window != 0 && space.cache.options().n_window_blocks != 0),
      stores_(config.cache_layer < 0),
      cache_layer_(stores_ ? place.layer : config.cache_layer),
      addition_{.bias = weights.o_bias,
                .norm = weights.post_norm,
                .norm_eps = place.norm_eps,
                .scale = place.residual_scale,
                .apart = place.convolved},
      norms_rows_(config.qk_norm == QkNorm::kRow),
      groups_fill_blocks_(group_ * config.head_dim % tensor::kBlock == 0),
      scale_(config.scale != 0
                 ? config.scale
                 : static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)))),
      key_rotation_(space.cache.options().k_type, config.head_dim, config.head_dim),
      value_rotation_(space.cache.options().v_type, config.head_dim, config.head_dim),
      residual_(space.scratch.residual.View(place.dim)),
      input_(input),
      q_(space.scratch.q.View(config.n_heads * config.head_dim)),
      k_(space.scratch.k.View(config.n_kv_heads * config.head_dim)),
      v_(space.scratch.v.View(config.n_kv_heads * config.head_dim)),
      gate_(config.output_gate ? space.scratch.recurrent.gate.View(config.n_heads * config.head_dim)
                               : Activation{}),
      attended_(space.scratch.attention.View(config.n_heads * config.head_dim)),
      gather_queries_(space, q_, GatheredForm::kFloat, HeadColumnsByRank(config, space.division)),
      gather_keys_(space, k_, GatheredForm::kFloat, ColumnsByRank(space.division, k_.width)),
      gather_attended_(
          space, attended_,
          weights.o.quantised() && groups_fill_blocks_ ? GatheredForm::kInt8 : GatheredForm::kFloat,
          HeadColumnsByRank(config, space.division)),
      gather_output_(space, OutputOf(space, addition_, residual_), GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void Attention::AddPhases(std::vector<Phase>& phases) const {
  if (!config_.reads_pair && !place_.convolved)
    phases.push_back(PhaseOf<&Attention::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Attention::Project>(*this, Split::kOther));
  if (norms_rows_) {
    gather_queries_.AddPhases(phases);
    gather_keys_.AddPhases(phases);
    phases.push_back(PhaseOf<&Attention::NormRows>(*this, Split::kRows));
  }
  phases.push_back(PhaseOf<&Attention::Attend>(*this, Split::kOther));
  gather_attended_.AddPhases(phases);
  if (weights_.o.quantised() && !groups_fill_blocks_)
    phases.push_back(PhaseOf<&Attention::QuantiseAttended>(*this, Split::kOther));
  phases.push_back(PhaseOf<&Attention::Output>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
  if (weights_.post_norm != nullptr)
    phases.push_back(PhaseOf<&Attention::AddNormed>(*this, Split::kRows));
}

void Attention::AddInjectionPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Attention::ProjectKeys>(*this, Split::kOther));
  phases.push_back(PhaseOf<&Attention::StoreKeys>(*this, Split::kOther));
}

void Attention::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    NormOrCopy(space_, residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
               input_.Row(row));
  if (quantise_input_) Quantise(space_.kernels, input_, rows);
}

void Attention::Project(const Pass& pass, int thread) const noexcept {
  MultiplyAll(space_, pass.n_rows(),
              {{weights_.q, input_, q_},
               {weights_.k, input_, k_},
               {weights_.v, input_, v_},
               {weights_.gate, input_, gate_}},
              thread);
}

void Attention::ProjectKeys(const Pass& pass, int thread) const noexcept {
  MultiplyAll(space_, pass.n_rows(), {{weights_.k, input_, k_}, {weights_.v, input_, v_}}, thread);
}

void Attention::StoreKeys(const Pass& pass, int thread) const noexcept {
  const int n_heads = own_.keys.n();
  const auto share = space_.pool.ShareOf(static_cast<int>(pass.segments.size()) * n_heads, thread);
  for (int job = share.begin; job < share.end; ++job) {
    const int head = own_.keys.begin + job % n_heads;
    StoreHead(pass.segments[static_cast<std::size_t>(job / n_heads)], head,
              space_.cache.Head(cache_layer_, head - own_.keys.begin));
  }
}

// Biases come before the norm.
void Attention::NormRows(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  const auto norm = [&](float* x, const float* bias, const float* weight, int n) {
    if (bias != nullptr)
      for (int i = 0; i < n; ++i) x[i] += bias[i];
    space_.kernels.rms_norm(x, weight, n, place_.norm_eps, x);
  };
  for (int row = rows.begin; row < rows.end; ++row) {
    norm(q_.Row(row), weights_.q_bias, weights_.q_norm, q_.width);
    norm(k_.Row(row), weights_.k_bias, weights_.k_norm, k_.width);
  }
}

// A thread takes key-value heads of sequences, with all queries that read them.
void Attention::Attend(const Pass& pass, int thread) const noexcept {
  const int n_heads = own_.keys.n();
  const auto share = space_.pool.ShareOf(static_cast<int>(pass.segments.size()) * n_heads, thread);
  for (int job = share.begin; job < share.end; ++job)
    AttendHead(pass, pass.segments[static_cast<std::size_t>(job / n_heads)],
               own_.keys.begin + job % n_heads, thread);
}

// Heads of one row, right after they were multiplied.
void Attention::Prepare(float* x, int n_heads, const float* bias, const float* norm,
                        Pos position) const noexcept {
  const int head_dim = config_.head_dim;
  if (bias != nullptr)
    for (int i = 0; i < n_heads * head_dim; ++i) x[i] += bias[i];
  if (norm != nullptr)
    for (int h = 0; h < n_heads; ++h)
      space_.kernels.rms_norm(x + h * head_dim, norm, head_dim, place_.norm_eps, x + h * head_dim);
  if (rope_ != nullptr)
    space_.kernels.rope(x, n_heads, head_dim, config_.rope->n_rot, config_.rope->interleaved,
                        rope_->Cos(position), rope_->Sin(position));
}

// What queries are multiplied by, so that far texts do not blur the softmax.
float Attention::Temperature(Pos position) const noexcept {
  const int steps = position / config_.temperature_length;
  return static_cast<float>(1 + config_.temperature_scale * std::log(1.0 + steps));
}

OutputRange Attention::QueriesOf(int head) const noexcept {
  return {std::max(head * group_, own_.queries.begin),
          std::min((head + 1) * group_, own_.queries.end)};
}

void Attention::PrepareQueries(const kv::Segment& segment, OutputRange queries) const noexcept {
  const int at = queries.begin * config_.head_dim;
  for (int i = 0; i < segment.n_rows; ++i) {
    float* const q = q_.Row(segment.row_begin + i) + at;
    const Pos position = segment.first_position + i;
    Prepare(q, queries.n(), HeadBias(weights_.q_bias, at), HeadNorm(weights_.q_norm), position);
    if (config_.temperature_scale != 0)
      space_.kernels.scale(q, queries.n() * config_.head_dim, Temperature(position));
    key_rotation_.Read(space_.kernels, q, queries.n() * config_.head_dim);
  }
}

// Prepares the head's keys and values, and stores them.
void Attention::StoreHead(const kv::Segment& segment, int head,
                          const CacheMemory::HeadView& view) const noexcept {
  const int head_dim = config_.head_dim, at = head * head_dim;
  const auto& types = space_.cache.options();
  for (int i = 0; i < segment.n_rows; ++i) {
    const int row = segment.row_begin + i;
    const Pos position = segment.first_position + i;
    float *const k = k_.Row(row) + at, *const v = v_.Row(row) + at;
    if (weights_.v.n_tiles == 0) std::copy_n(k, head_dim, v);
    Prepare(k, 1, HeadBias(weights_.k_bias, at), HeadNorm(weights_.k_norm), position);
    if (weights_.v_bias != nullptr)
      for (int j = 0; j < head_dim; ++j) v[j] += weights_.v_bias[at + j];
    if (weights_.v_norm != nullptr)
      space_.kernels.rms_norm(v, weights_.v_norm, head_dim, place_.norm_eps, v);
    const auto block = static_cast<std::size_t>(
        BlocksOf(segment)[static_cast<std::size_t>(position / tensor::kKvBlock)]);
    const int slot = position % tensor::kKvBlock;
    key_rotation_.Store(space_.kernels, k, head_dim);
    value_rotation_.Store(space_.kernels, v, head_dim);
    space_.kernels.store_k[static_cast<std::size_t>(types.k_type)](k, head_dim, slot,
                                                                   view.k + block * view.k_stride);
    space_.kernels.store_v[static_cast<std::size_t>(types.v_type)](v, head_dim, slot,
                                                                   view.v + block * view.v_stride);
  }
}

void Attention::AttendHead(const Pass& pass, const kv::Segment& segment, int head,
                           int thread) const noexcept {
  const OutputRange queries = QueriesOf(head);
  const int at = queries.begin * config_.head_dim, end = queries.end * config_.head_dim;
  const auto view = space_.cache.Head(cache_layer_, head - own_.keys.begin);
  PrepareQueries(segment, queries);
  if (stores_) StoreHead(segment, head, view);
  Scratch& scratch = space_.scratch;
  const kernels::AttentionArgs args = {
      .q = q_.Row(segment.row_begin) + at,
      .q_stride = q_.stride,
      .out = attended_.Row(segment.row_begin) + at,
      .out_stride = attended_.stride,
      .n_rows = segment.n_rows,
      .n_group = queries.n(),
      .head_dim = config_.head_dim,
      .scale = scale_,
      .soft_cap = config_.soft_cap,
      .sinks = weights_.sinks == nullptr ? nullptr : weights_.sinks + queries.begin,
      .window = pass.WindowOf(config_.window),
      .row_len = scratch.row_len.data() + segment.row_begin,
      .blocks = BlocksOf(segment).data(),
      .k = view.k,
      .k_stride = view.k_stride,
      .v = view.v,
      .v_stride = view.v_stride,
      .k_type = space_.cache.options().k_type,
      .v_type = space_.cache.options().v_type,
      .scratch = scratch.attention_scratch.data() + thread * scratch.attention_scratch_stride};
  RunKernel(args, pass, head, thread);
  for (int row = segment.row_begin; row < segment.row_begin + segment.n_rows; ++row)
    value_rotation_.Read(space_.kernels, attended_.Row(row) + at, end - at);
  if (config_.output_gate) GateAttended(segment, queries);
  if (weights_.o.quantised() && groups_fill_blocks_)
    Quantise(space_.kernels, attended_, segment.row_begin, segment.n_rows, at, end);
}

// The windows of rows that all see to the end of their segment begin at different positions, and so
// differ in length.
void Attention::RunKernel(kernels::AttentionArgs args, const Pass& pass, int head,
                          int thread) const noexcept {
  if (config_.window == 0) {
    ChoiceOfBlocks of;
    if (pass.best_blocks > 0)
      of = {&space_.scratch.block_choices[static_cast<std::size_t>(thread)],
            space_.cache.bounds().Of(cache_layer_, head - own_.keys.begin)};
    return model::Attend(space_.kernels, args, pass, of);
  }
  if (config_.causal) return space_.kernels.attention(args);
  int n = std::exchange(args.n_rows, 1);
  for (args.window += n - 1; n > 0; --n, --args.window) {
    space_.kernels.attention(args);
    args.q += args.q_stride, args.out += args.out_stride, ++args.row_len;
  }
}

void Attention::GateAttended(const kv::Segment& segment, OutputRange queries) const noexcept {
  const int at = queries.begin * config_.head_dim, n = queries.n() * config_.head_dim;
  for (int row = segment.row_begin; row < segment.row_begin + segment.n_rows; ++row) {
    float *const gate = gate_.Row(row) + at, *const y = attended_.Row(row) + at;
    space_.kernels.exp_sum(gate, n, 0, -1, gate);
    for (int i = 0; i < n; ++i) y[i] *= 1 / (1 + gate[i]);
  }
}

void Attention::QuantiseAttended(const Pass& pass, int thread) const noexcept {
  const auto columns = space_.pool.ShareOf(attended_.width, thread, tensor::kBlock);
  Quantise(space_.kernels, attended_, 0, pass.n_rows(), columns.begin, columns.end);
}

void Attention::Output(const Pass& pass, int thread) const noexcept {
  AddProduct(space_, weights_.o, attended_, pass.n_rows(), addition_, residual_, thread);
}

void Attention::AddNormed(const Pass& pass, int thread) const noexcept {
  model::AddNormed(space_, addition_, residual_, space_.RowsOf(pass, thread));
}

}  // namespace foretoken::model
