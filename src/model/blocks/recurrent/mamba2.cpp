// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/mamba2.h"

#include <numeric>

#include "model/blocks/recurrent/head_state.h"

namespace foretoken::model {
namespace {

std::vector<int> HeadsOf(OutputRange own) {
  std::vector<int> heads(static_cast<std::size_t>(own.n()));
  std::iota(heads.begin(), heads.end(), own.begin);
  return heads;
}

}  // namespace

Mamba2::Mamba2(const Workspace& space, const Mamba2Config& config, const Mamba2Weights& weights,
               const LayerPlace& place)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      own_(space.division.Own(config.n_heads, 1)),
      heads_(HeadsOf(own_)),
      addition_{.scale = place.residual_scale},
      residual_(space.scratch.residual.View(place.dim)),
      normed_(space.scratch.normed.View(place.dim)),
      c_(space.scratch.recurrent.inputs.View(config.kept())),
      dt_(ColumnsFrom(c_, config.dt_column())),
      z_(space.scratch.recurrent.gate.View(config.inner())),
      y_(space.scratch.attention.View(config.inner())),
      convolution_(space, {.layer = place.layer, .taps = config.taps, .width = config.convolved()},
                   c_, weights.taps, weights.tap_bias),
      gather_inputs_(space, c_, GatheredForm::kFloat,
                     ColumnsByRank(space.division, config.convolved())),
      gather_y_(space, y_, GatheredForm::kFloat,
                ColumnsByRank(space.division, config.inner(), config.head_dim)),
      gather_output_(space, OutputOf(space, addition_, residual_), GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void Mamba2::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Mamba2::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Mamba2::Project>(*this, Split::kOther));
  gather_inputs_.AddPhases(phases);
  phases.push_back(PhaseOf<&Mamba2::Advance>(*this, Split::kOther));
  gather_y_.AddPhases(phases);
  phases.push_back(PhaseOf<&Mamba2::NormGroups>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Mamba2::Output>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
}

void Mamba2::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end && weights_.norm != nullptr; ++row)
    space_.kernels.rms_norm(residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
                            normed_.Row(row));
  if (weights_.z.quantised()) Quantise(space_.kernels, normed_, rows);
}

void Mamba2::Project(const Pass& pass, int thread) const noexcept {
  MultiplyAll(space_, pass.n_rows(),
              {{weights_.c, normed_, c_}, {weights_.z, normed_, z_}, {weights_.dt, normed_, dt_}},
              thread);
}

// A thread takes heads of sequences.
void Mamba2::Advance(const Pass& pass, int thread) const noexcept {
  const int group_size = config_.n_heads / config_.n_groups;
  ForEachHeads(
      space_, pass, thread, heads_, [=](int head) { return head / group_size; },
      [&](const kv::Segment& segment, std::span<const int> heads) {
        ForEachPositions(segment, [&](const Positions& positions) {
          AdvanceHeads(segment, positions, heads, thread);
        });
      });
}

// Heads of one group.
void Mamba2::AdvanceHeads(const kv::Segment& segment, const Positions& positions,
                          std::span<const int> heads, int thread) const noexcept {
  const int n = config_.head_dim, n_state = config_.state_size;
  float* const work = space_.scratch.recurrent.Work(thread);
  Prepared prepared = {.copy = work,
                       .u = work + n * n_state,
                       .scaled = prepared.u + kMostPositions * n,
                       .b = prepared.scaled + kMostPositions * n,
                       .c = prepared.b + kMostPositions * n_state,
                       .decay = prepared.c + kMostPositions * n_state,
                       .inputs = {}};
  convolution_.Find(segment, positions.first, positions.n, prepared.inputs);
  const int group = heads.front() / (config_.n_heads / config_.n_groups);
  const int b = config_.inner() + group * n_state, c = b + config_.n_groups * n_state;
  convolution_.Run(prepared.inputs, b, n_state, true, prepared.b, n_state);
  convolution_.Run(prepared.inputs, c, n_state, true, prepared.c, n_state);
  for (const int head : heads) {
    PrepareHead(head, prepared);
    AdvanceHead(segment, positions, head, prepared);
  }
}

void Mamba2::PrepareHead(int head, const Prepared& p) const noexcept {
  const int n = config_.head_dim, n_positions = p.inputs.n_positions;
  convolution_.Run(p.inputs, head * n, n, true, p.u, n);
  convolution_.Gather(p.inputs, config_.dt_column() + head, p.decay);
  for (int i = 0; i < n_positions; ++i) p.decay[i] += weights_.dt_bias[head];
  space_.kernels.softplus(p.decay, n_positions, p.decay);
  for (int i = 0; i < n_positions; ++i) {
    const float t = p.decay[i];
    for (int j = i * n; j < (i + 1) * n; ++j) p.scaled[j] = t * p.u[j];
    p.decay[i] = t * weights_.a[head];
  }
  space_.kernels.exp_sum(p.decay, n_positions, 0, 1, p.decay);
}

void Mamba2::AdvanceHead(const kv::Segment& segment, const Positions& positions, int head,
                         const Prepared& p) const noexcept {
  const int n = config_.head_dim, at = head * n;
  AdvanceState(space_, {place_.layer, segment.seq, head - own_.begin}, positions,
               {.work = p.copy,
                .n_in = config_.state_size,
                .n_out = n,
                .q = p.c,
                .k = p.b,
                .v = p.scaled,
                .decay = p.decay,
                .out = y_.Row(positions.row) + at,
                .out_stride = y_.stride});
  const float* u = p.u + positions.n_silent * n;
  for (int row = positions.row; row < positions.row + positions.n_rows(); ++row, u += n) {
    float* const y = y_.Row(row) + at;
    for (int i = 0; i < n; ++i) y[i] += weights_.d[head] * u[i];
    space_.kernels.silu_mul(z_.Row(row) + at, y, n, y);
  }
}

void Mamba2::NormGroups(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  const int n = config_.inner() / config_.n_groups;
  for (int row = rows.begin; row < rows.end && weights_.group_norm != nullptr; ++row)
    for (int at = 0; at < config_.inner(); at += n)
      space_.kernels.rms_norm(y_.Row(row) + at, weights_.group_norm + at, n, place_.norm_eps,
                              y_.Row(row) + at);
  if (weights_.out.quantised()) Quantise(space_.kernels, y_, rows);
}

// Behind a barrier, so nobody reads inputs of earlier passes any more.
void Mamba2::Output(const Pass& pass, int thread) const noexcept {
  const auto columns = space_.pool.ShareOf(config_.kept(), thread);
  for (const kv::Segment& segment : pass.segments)
    convolution_.Keep(segment, columns.begin, columns.end);
  AddProduct(space_, weights_.out, y_, pass.n_rows(), addition_, residual_, thread);
}

}  // namespace foretoken::model
