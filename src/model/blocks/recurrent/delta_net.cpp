// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/delta_net.h"

#include <algorithm>

#include "model/blocks/recurrent/head_state.h"
#include "model/ranks/heads.h"

namespace foretoken::model {

DeltaNet::DeltaNet(const Workspace& space, const DeltaNetConfig& config,
                   const DeltaNetWeights& weights, const LayerPlace& place)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      own_(space.division.Own(config.n_value_heads, 1)),
      heads_(HeadsByKeyHead()),
      addition_{.scale = place.residual_scale},
      residual_(space.scratch.residual.View(place.dim)),
      normed_(space.scratch.normed.View(place.dim)),
      c_(space.scratch.recurrent.inputs.View(config.kept())),
      alpha_(ColumnsFrom(c_, config.alpha_column())),
      beta_(ColumnsFrom(c_, config.beta_column())),
      z_(space.scratch.recurrent.gate.View(config.value_dim())),
      y_(space.scratch.attention.View(config.value_dim())),
      convolution_(space, {.layer = place.layer, .taps = config.taps, .width = config.convolved()},
                   c_, weights.taps),
      gather_inputs_(space, c_, GatheredForm::kFloat,
                     ColumnsByRank(space.division, config.convolved())),
      gather_y_(space, y_, FormFor(weights.out),
                ColumnsByRank(space.division, config.value_dim(), config.head_dim)),
      gather_output_(space, OutputOf(space, addition_, residual_), GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

std::vector<int> DeltaNet::HeadsByKeyHead() const {
  std::vector<int> heads;
  for (int key_head = 0; key_head < config_.n_key_heads; ++key_head)
    for (int head = own_.begin; head < own_.end; ++head)
      if (KeyHeadOf(head) == key_head) heads.push_back(head);
  return heads;
}

void DeltaNet::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&DeltaNet::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&DeltaNet::Project>(*this, Split::kOther));
  gather_inputs_.AddPhases(phases);
  phases.push_back(PhaseOf<&DeltaNet::Advance>(*this, Split::kOther));
  gather_y_.AddPhases(phases);
  phases.push_back(PhaseOf<&DeltaNet::Output>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
}

void DeltaNet::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
                            normed_.Row(row));
  if (weights_.c.quantised() || weights_.z.quantised() || weights_.alpha.quantised() ||
      weights_.beta.quantised())
    Quantise(space_.kernels, normed_, rows);
}

void DeltaNet::Project(const Pass& pass, int thread) const noexcept {
  MultiplyAll(space_, pass.n_rows(),
              {{weights_.c, normed_, c_},
               {weights_.z, normed_, z_},
               {weights_.alpha, normed_, alpha_},
               {weights_.beta, normed_, beta_}},
              thread);
}

// A thread takes heads of sequences.
void DeltaNet::Advance(const Pass& pass, int thread) const noexcept {
  const auto key_of = [this](int head) { return KeyHeadOf(head); };
  ForEachHeads(space_, pass, thread, heads_, key_of,
               [&](const kv::Segment& segment, std::span<const int> heads) {
                 ForEachPositions(segment, [&](const Positions& positions) {
                   AdvanceHeads(segment, positions, heads, thread);
                 });
               });
}

// Value heads with the same key head.
void DeltaNet::AdvanceHeads(const kv::Segment& segment, const Positions& positions,
                            std::span<const int> heads, int thread) const noexcept {
  const std::int64_t n = config_.head_dim, each = n * kMostPositions;
  float* const work = space_.scratch.recurrent.Work(thread);
  Prepared prepared = {.copy = work,
                       .q = work + n * n,
                       .k = prepared.q + each,
                       .v = prepared.k + each,
                       .decay = prepared.v + each,
                       .beta = prepared.decay + kMostPositions,
                       .inputs = {}};
  convolution_.Find(segment, positions.first, positions.n, prepared.inputs);
  PrepareKeyHead(KeyHeadOf(heads.front()), prepared);
  for (const int head : heads) {
    PrepareHead(head, prepared);
    AdvanceHead(segment, positions, head, prepared);
  }
}

void DeltaNet::PrepareKeyHead(int key_head, const Prepared& p) const noexcept {
  const int n = config_.head_dim, column = key_head * n;
  convolution_.Run(p.inputs, column, n, true, p.q, n);
  convolution_.Run(p.inputs, config_.n_key_heads * n + column, n, true, p.k, n);
  // A norm with these weights divides by the length.
  const float eps = place_.norm_eps * place_.norm_eps / static_cast<float>(n);
  for (int i = 0; i < p.inputs.n_positions; ++i) {
    space_.kernels.rms_norm(p.q + i * n, weights_.q_scale, n, eps, p.q + i * n);
    space_.kernels.rms_norm(p.k + i * n, weights_.k_scale, n, eps, p.k + i * n);
  }
}

void DeltaNet::PrepareHead(int head, const Prepared& p) const noexcept {
  const int n = config_.head_dim, n_positions = p.inputs.n_positions;
  convolution_.Run(p.inputs, 2 * config_.n_key_heads * n + head * n, n, true, p.v, n);
  convolution_.Gather(p.inputs, config_.alpha_column() + head, p.decay);
  for (int i = 0; i < n_positions; ++i) p.decay[i] += weights_.dt[head];
  space_.kernels.softplus(p.decay, n_positions, p.decay);
  for (int i = 0; i < n_positions; ++i) p.decay[i] *= weights_.a[head];
  space_.kernels.exp_sum(p.decay, n_positions, 0, 1, p.decay);
  convolution_.Gather(p.inputs, config_.beta_column() + head, p.beta);
  space_.kernels.exp_sum(p.beta, n_positions, 0, -1, p.beta);
  for (int i = 0; i < n_positions; ++i) p.beta[i] = 1 / (1 + p.beta[i]);
}

void DeltaNet::AdvanceHead(const kv::Segment& segment, const Positions& positions, int head,
                           const Prepared& p) const noexcept {
  const int n = config_.head_dim, at = head * n, end = positions.row + positions.n_rows();
  AdvanceState(space_, {place_.layer, segment.seq, head - own_.begin}, positions,
               {.work = p.copy,
                .n_in = n,
                .n_out = n,
                .q = p.q,
                .k = p.k,
                .v = p.v,
                .decay = p.decay,
                .beta = p.beta,
                .out = y_.Row(positions.row) + at,
                .out_stride = y_.stride});
  for (int row = positions.row; row < end; ++row) {
    float* const y = y_.Row(row) + at;
    space_.kernels.rms_norm(y, weights_.head_norm, n, place_.norm_eps, y);
    space_.kernels.silu_mul(z_.Row(row) + at, y, n, y);
  }
  if (weights_.out.quantised())
    Quantise(space_.kernels, y_, positions.row, positions.n_rows(), at, at + n);
}

// Behind a barrier, so nobody reads inputs of earlier passes any more.
void DeltaNet::Output(const Pass& pass, int thread) const noexcept {
  const auto columns = space_.pool.ShareOf(config_.kept(), thread);
  for (const kv::Segment& segment : pass.segments)
    convolution_.Keep(segment, columns.begin, columns.end);
  AddProduct(space_, weights_.out, y_, pass.n_rows(), addition_, residual_, thread);
}

}  // namespace foretoken::model
