// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/mamba2.h"

#include <algorithm>

namespace foretoken::model {

Mamba2::Mamba2(const Workspace& space, const Mamba2Config& config, const Mamba2Weights& weights,
               const LayerPlace& place)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      own_(space.division.Own(config.n_heads, 1)),
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

// The three matrices are one range of tiles, so that each thread gets an even part of the whole.
void Mamba2::Project(const Pass& pass, int thread) const noexcept {
  const auto share =
      space_.pool.ShareOf(weights_.c.n_tiles + weights_.z.n_tiles + weights_.dt.n_tiles, thread);
  int first = 0;
  const auto part = [&](const Linear& w, const Activation& y) {
    const int begin = std::clamp(share.begin - first, 0, w.n_tiles),
              end = std::clamp(share.end - first, 0, w.n_tiles);
    Multiply(space_.kernels, w, normed_, pass.n_rows(), y, false, w.first_tile + begin,
             w.first_tile + end);
    first += w.n_tiles;
  };
  part(weights_.c, c_);
  part(weights_.z, z_);
  part(weights_.dt, dt_);
}

// A thread takes heads of sequences.
void Mamba2::Advance(const Pass& pass, int thread) const noexcept {
  if (own_.n() == 0) return;
  const auto share = space_.pool.ShareOf(static_cast<int>(pass.segments.size()) * own_.n(), thread);
  for (int job = share.begin; job < share.end; ++job)
    AdvanceHead(pass.segments[static_cast<std::size_t>(job / own_.n())],
                own_.begin + job % own_.n(), thread);
}

// The state takes in the positions before `to`. Those from there on change a copy.
void Mamba2::AdvanceHead(const kv::Segment& segment, int head, int thread) const noexcept {
  const int n = config_.head_dim, n_state = config_.state_size, at = head * n;
  const std::int64_t numbers = std::int64_t{n} * n_state;
  float* state = space_.states.State(place_.layer, segment.seq) + (head - own_.begin) * numbers;
  float* const copy = space_.scratch.recurrent.Work(thread);
  Input input = {.u = copy + numbers,
                 .scaled = input.u + n,
                 .b = input.scaled + n,
                 .c = input.b + n_state,
                 .decay = 0};
  const Pos first = segment.first_position, end = first + segment.n_rows;
  if (segment.state.from == 0) std::fill_n(state, numbers, 0.0f);
  for (Pos position = segment.state.from; position < end; ++position) {
    if (position == segment.state.to) {
      std::copy_n(state, numbers, copy);
      state = copy;
    }
    Prepare(segment, position, head, input);
    const int row = segment.row_begin + position - first;
    float* const y = position < first ? nullptr : y_.Row(row) + at;
    space_.kernels.advance_state({.state = state,
                                  .n_in = n_state,
                                  .n_out = n,
                                  .q = input.c,
                                  .k = input.b,
                                  .v = input.scaled,
                                  .decay = input.decay,
                                  .corrects = false,
                                  .beta = 0,
                                  .out = y});
    if (y == nullptr) continue;
    for (int i = 0; i < n; ++i) y[i] += weights_.d[head] * input.u[i];
    space_.kernels.silu_mul(z_.Row(row) + at, y, n, y);
  }
}

void Mamba2::Convolve(const kv::Segment& segment, Pos position, int column, int n,
                      float* y) const noexcept {
  convolution_.Run(segment, position, column, n, y);
  space_.kernels.silu_mul(y, weights_.ones, n, y);
}

void Mamba2::Prepare(const kv::Segment& segment, Pos position, int head,
                     Input& input) const noexcept {
  const kernels::Kernels& kernels = space_.kernels;
  const int n = config_.head_dim, n_state = config_.state_size,
            group = head / (config_.n_heads / config_.n_groups);
  const int b = config_.inner() + group * n_state, c = b + config_.n_groups * n_state;
  Convolve(segment, position, head * n, n, input.u);
  Convolve(segment, position, b, n_state, input.b);
  Convolve(segment, position, c, n_state, input.c);
  float t =
      convolution_.Input(segment, position)[config_.dt_column() + head] + weights_.dt_bias[head];
  kernels.softplus(&t, 1, &t);
  for (int i = 0; i < n; ++i) input.scaled[i] = t * input.u[i];
  t *= weights_.a[head];
  kernels.exp_sum(&t, 1, 0, 1, &input.decay);
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
