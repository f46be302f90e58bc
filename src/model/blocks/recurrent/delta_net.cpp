// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/delta_net.h"

#include <algorithm>

#include "model/blocks/experts/expert_choice.h"
#include "model/ranks/heads.h"

namespace foretoken::model {

DeltaNet::DeltaNet(const Workspace& space, const DeltaNetConfig& config,
                   const DeltaNetWeights& weights, const LayerPlace& place)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      own_(space.division.Own(config.n_value_heads, 1)),
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

// The matrices are one range of tiles, so that each thread gets an even part of the whole.
void DeltaNet::Project(const Pass& pass, int thread) const noexcept {
  const auto share = space_.pool.ShareOf(
      weights_.c.n_tiles + weights_.z.n_tiles + weights_.alpha.n_tiles + weights_.beta.n_tiles,
      thread);
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
  part(weights_.alpha, alpha_);
  part(weights_.beta, beta_);
}

// A thread takes heads of sequences.
void DeltaNet::Advance(const Pass& pass, int thread) const noexcept {
  if (own_.n() == 0) return;
  const auto share = space_.pool.ShareOf(static_cast<int>(pass.segments.size()) * own_.n(), thread);
  for (int job = share.begin; job < share.end; ++job)
    AdvanceHead(pass.segments[static_cast<std::size_t>(job / own_.n())],
                own_.begin + job % own_.n(), thread);
}

// The state takes in the positions before `to`. Those from there on change a copy.
void DeltaNet::AdvanceHead(const kv::Segment& segment, int head, int thread) const noexcept {
  const int n = config_.head_dim, at = head * n;
  const std::int64_t numbers = std::int64_t{n} * n;
  float* state = space_.states.State(place_.layer, segment.seq) + (head - own_.begin) * numbers;
  float* const copy = space_.scratch.recurrent.Work(thread);
  Input input = {.q = copy + numbers, .k = copy + numbers + n, .v = copy + numbers + 2 * n};
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
                                  .n_in = n,
                                  .n_out = n,
                                  .q = input.q,
                                  .k = input.k,
                                  .v = input.v,
                                  .decay = input.decay,
                                  .corrects = true,
                                  .beta = input.beta,
                                  .out = y});
    if (y != nullptr) Finish(y, z_.Row(row) + at);
  }
  if (weights_.out.quantised())
    Quantise(space_.kernels, y_, segment.row_begin, segment.n_rows, at, at + n);
}

// head_dim columns of the convolution, with SiLU behind it.
void DeltaNet::Convolve(const kv::Segment& segment, Pos position, int column,
                        float* y) const noexcept {
  convolution_.Run(segment, position, column, config_.head_dim, y);
  space_.kernels.silu_mul(y, weights_.ones, config_.head_dim, y);
}

void DeltaNet::Prepare(const kv::Segment& segment, Pos position, int head,
                       Input& input) const noexcept {
  const kernels::Kernels& kernels = space_.kernels;
  const int n = config_.head_dim, key = KeyHeadOf(head) * n;
  Convolve(segment, position, key, input.q);
  Convolve(segment, position, config_.n_key_heads * n + key, input.k);
  Convolve(segment, position, 2 * config_.n_key_heads * n + head * n, input.v);
  // A norm with these weights divides by the length.
  const float eps = place_.norm_eps * place_.norm_eps / static_cast<float>(n);
  kernels.rms_norm(input.q, weights_.q_scale, n, eps, input.q);
  kernels.rms_norm(input.k, weights_.k_scale, n, eps, input.k);
  const float* const c = convolution_.Input(segment, position);
  float alpha = c[config_.alpha_column() + head] + weights_.dt[head];
  kernels.softplus(&alpha, 1, &alpha);
  alpha *= weights_.a[head];
  kernels.exp_sum(&alpha, 1, 0, 1, &input.decay);
  input.beta = Sigmoid(kernels, c[config_.beta_column() + head]);
}

void DeltaNet::Finish(float* y, const float* z) const noexcept {
  space_.kernels.rms_norm(y, weights_.head_norm, config_.head_dim, place_.norm_eps, y);
  space_.kernels.silu_mul(z, y, config_.head_dim, y);
}

// Behind a barrier, so nobody reads inputs of earlier passes any more.
void DeltaNet::Output(const Pass& pass, int thread) const noexcept {
  const auto columns = space_.pool.ShareOf(config_.kept(), thread);
  for (const kv::Segment& segment : pass.segments)
    convolution_.Keep(segment, columns.begin, columns.end);
  AddProduct(space_, weights_.out, y_, pass.n_rows(), addition_, residual_, thread);
}

}  // namespace foretoken::model
