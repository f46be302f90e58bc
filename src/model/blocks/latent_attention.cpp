// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/latent_attention.h"

#include <algorithm>

#include "model/blocks/attend.h"

namespace foretoken::model {
namespace {

// Columns [column, column + width) of n_rows rows, as part `index` of several: each part has an
// int8 form of its own, and these forms lie one after another.
Activation PartOf(const Activation& all, int column, int width, int index, int n_rows) noexcept {
  const std::int64_t blocks = std::int64_t{index} * n_rows * (width / tensor::kBlock);
  return {.x = all.x + column,
          .stride = all.stride,
          .width = width,
          .q = all.q + blocks * tensor::kBlock,
          .d = all.d + blocks,
          .s = all.s + 2 * blocks};
}

// Calls f(segment, row) for each of the rows.
template <typename F>
void ForSegments(const Pass& pass, ThreadPool::Share rows, F&& f) noexcept {
  for (const kv::Segment& segment : pass.segments) {
    const int begin = std::max(rows.begin, segment.row_begin),
              end = std::min(rows.end, segment.row_begin + segment.n_rows);
    for (int row = begin; row < end; ++row) f(segment, row);
  }
}

Pos PositionOf(const kv::Segment& segment, int row) noexcept {
  return segment.first_position + (row - segment.row_begin);
}

// y_h = W_h x_h for the thread's share of the tiles of these heads, which are those that w has, with
// x_h = input(h) and y_h the columns of y from h * step on.
template <typename Input>
void MultiplyHeads(const Workspace& space, const ExpertLinear& w, OutputRange heads, int n_rows,
                   Input&& input, const Activation& y, int step, int thread) noexcept {
  if (heads.n() == 0) return;
  const int n_tiles = w.first.n_tiles;
  const auto share = space.pool.ShareOf(heads.n() * n_tiles, thread);
  for (int i = share.begin / n_tiles; i < heads.n() && i * n_tiles < share.end; ++i) {
    const int head = heads.begin + i;
    Activation columns = y;
    columns.x += head * step;
    Multiply(space.kernels, w.Of(i), input(head), n_rows, columns, false,
             std::max(share.begin - i * n_tiles, 0), std::min(share.end - i * n_tiles, n_tiles));
  }
}

}  // namespace

LatentAttention::LatentAttention(const Workspace& space, const LatentAttentionConfig& config,
                                 const LatentAttentionWeights& weights, const LayerPlace& place,
                                 const RopeTable& rope)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      rope_(rope),
      own_(OwnHeads(config, space.division)),
      from_input_(config.q_rank != 0 ? weights.q_a : weights.q),
      quantise_input_(from_input_.quantised() || weights.kv.quantised()),
      addition_{.scale = place.residual_scale},
      rotation_(space.cache.options().k_type, config.key_dim(), config.rank),
      residual_(space.scratch.residual.View(place.dim)),
      input_(space.scratch.normed.View(place.dim)),
      q_a_(space.scratch.latent.q_a.View(config.q_rank)),
      q_(space.scratch.latent.q.View(config.n_heads * config.query_dim())),
      key_(space.scratch.latent.key.View(config.key_dim())),
      queries_(space.scratch.latent.queries.View(config.n_heads * config.key_dim())),
      attended_(space.scratch.latent.attended.View(config.n_heads * config.rank)),
      results_(space.scratch.attention.View(config.n_heads * config.value_dim)),
      gather_results_(space, results_, FormFor(weights.o),
                      HeadColumnsByRank(config, space.division)),
      gather_output_(space, residual_, GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void LatentAttention::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&LatentAttention::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&LatentAttention::Project>(*this, Split::kOther));
  phases.push_back(PhaseOf<&LatentAttention::StoreKeys>(*this, Split::kRows));
  if (config_.q_rank != 0)
    phases.push_back(PhaseOf<&LatentAttention::ProjectQueries>(*this, Split::kOther));
  phases.push_back(PhaseOf<&LatentAttention::PrepareQueries>(*this, Split::kRows));
  phases.push_back(PhaseOf<&LatentAttention::EnterLatents>(*this, Split::kOther));
  phases.push_back(PhaseOf<&LatentAttention::Attend>(*this, Split::kOther));
  phases.push_back(PhaseOf<&LatentAttention::LeaveLatents>(*this, Split::kOther));
  if (weights_.o.quantised())
    phases.push_back(PhaseOf<&LatentAttention::QuantiseResults>(*this, Split::kOther));
  gather_results_.AddPhases(phases);
  phases.push_back(PhaseOf<&LatentAttention::Output>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
}

void LatentAttention::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    NormOrCopy(space_, residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
               input_.Row(row));
  if (quantise_input_) Quantise(space_.kernels, input_, rows);
}

void LatentAttention::Project(const Pass& pass, int thread) const noexcept {
  MultiplyAll(space_, pass.n_rows(),
              {{from_input_, input_, config_.q_rank != 0 ? q_a_ : q_}, {weights_.kv, input_, key_}},
              thread);
}

// Also norms what the second matrix of the queries reads.
void LatentAttention::StoreKeys(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  ForSegments(pass, rows, [this](const kv::Segment& segment, int row) { StoreKey(segment, row); });
  if (config_.q_rank == 0) return;
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(q_a_.Row(row), weights_.q_a_norm, config_.q_rank, place_.norm_eps,
                            q_a_.Row(row));
  if (weights_.q.quantised()) Quantise(space_.kernels, q_a_, rows);
}

void LatentAttention::StoreKey(const kv::Segment& segment, int row) const noexcept {
  const Pos position = PositionOf(segment, row);
  float* const key = key_.Row(row);
  space_.kernels.rms_norm(key, weights_.latent_norm, config_.rank, place_.norm_eps, key);
  Rotate(key + config_.rank, 1, config_.rope.n_rot, position);
  const auto view = space_.cache.Head(place_.layer, 0);
  const auto block = static_cast<std::size_t>(
      segment.blocks[static_cast<std::size_t>(position / tensor::kKvBlock)]);
  rotation_.Store(space_.kernels, key, config_.key_dim());
  space_.kernels.store_k[static_cast<std::size_t>(space_.cache.options().k_type)](
      key, config_.key_dim(), position % tensor::kKvBlock, view.k + block * view.k_stride);
}

// The rotated parts of n_heads heads, `stride` apart.
void LatentAttention::Rotate(float* x, int n_heads, int stride, Pos position) const noexcept {
  space_.kernels.rope(x, n_heads, stride, config_.rope.n_rot, config_.rope.interleaved,
                      rope_.Cos(position), rope_.Sin(position));
}

void LatentAttention::ProjectQueries(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, weights_.q, q_a_, pass.n_rows(), q_, thread);
}

// The rotated parts are complete with this. The others have still to enter the space of the latents.
void LatentAttention::PrepareQueries(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  ForSegments(pass, rows, [this](const kv::Segment& segment, int row) {
    float* const rotated = q_.Row(row) + config_.head_dim;
    Rotate(rotated + own_.begin * config_.query_dim(), own_.n(), config_.query_dim(),
           PositionOf(segment, row));
    for (int h = own_.begin; h < own_.end; ++h)
      std::copy_n(rotated + h * config_.query_dim(), config_.rope.n_rot,
                  queries_.Row(row) + h * config_.key_dim() + config_.rank);
  });
  if (!weights_.k.quantised()) return;
  for (int h = own_.begin; h < own_.end; ++h)
    Quantise(space_.kernels, QueryOf(h, pass.n_rows()), rows);
}

Activation LatentAttention::QueryOf(int head, int n_rows) const noexcept {
  return PartOf(q_, head * config_.query_dim(), config_.head_dim, head, n_rows);
}

Activation LatentAttention::AttendedOf(int head, int n_rows) const noexcept {
  return PartOf(attended_, head * config_.rank, config_.rank, head, n_rows);
}

void LatentAttention::EnterLatents(const Pass& pass, int thread) const noexcept {
  const auto query = [&](int head) { return QueryOf(head, pass.n_rows()); };
  MultiplyHeads(space_, weights_.k, own_, pass.n_rows(), query, queries_, config_.key_dim(),
                thread);
}

// A thread takes a run of heads of the sequences, one call for those of the same sequence.
void LatentAttention::Attend(const Pass& pass, int thread) const noexcept {
  const int n_heads = own_.n();
  const auto share = space_.pool.ShareOf(static_cast<int>(pass.segments.size()) * n_heads, thread);
  for (int job = share.begin; job < share.end;) {
    const int segment = job / n_heads, end = std::min(share.end, (segment + 1) * n_heads);
    AttendHeads(pass, pass.segments[static_cast<std::size_t>(segment)], own_.begin + job % n_heads,
                own_.begin + end - segment * n_heads, thread);
    job = end;
  }
}

void LatentAttention::AttendHeads(const Pass& pass, const kv::Segment& segment, int begin, int end,
                                  int thread) const noexcept {
  const auto view = space_.cache.Head(place_.layer, 0);
  Scratch& scratch = space_.scratch;
  const int n_heads = end - begin, last = segment.row_begin + segment.n_rows;
  for (int row = segment.row_begin; row < last; ++row)
    rotation_.Read(space_.kernels, queries_.Row(row) + begin * config_.key_dim(),
                   n_heads * config_.key_dim());
  const kernels::AttentionArgs args = {
      .q = queries_.Row(segment.row_begin) + begin * config_.key_dim(),
      .q_stride = queries_.stride,
      .out = attended_.Row(segment.row_begin) + begin * config_.rank,
      .out_stride = attended_.stride,
      .n_rows = segment.n_rows,
      .n_group = n_heads,
      .head_dim = config_.key_dim(),
      .scale = config_.scale,
      .soft_cap = 0,
      .sinks = nullptr,
      .window = 0,
      .values_in_keys = config_.rank,
      .row_len = scratch.row_len.data() + segment.row_begin,
      .blocks = segment.blocks.data(),
      .k = view.k,
      .k_stride = view.k_stride,
      .v = nullptr,
      .v_stride = 0,
      .k_type = space_.cache.options().k_type,
      .v_type = space_.cache.options().k_type,
      .scratch = scratch.attention_scratch.data() + thread * scratch.attention_scratch_stride};
  model::Attend(space_.kernels, args, pass);
  for (int row = segment.row_begin; row < last; ++row)
    rotation_.Read(space_.kernels, attended_.Row(row) + begin * config_.rank,
                   n_heads * config_.rank);
  if (!weights_.v.quantised()) return;
  for (int h = begin; h < end; ++h)
    Quantise(space_.kernels, AttendedOf(h, pass.n_rows()), segment.row_begin, segment.n_rows, 0,
             config_.rank);
}

void LatentAttention::LeaveLatents(const Pass& pass, int thread) const noexcept {
  const auto attended = [&](int head) { return AttendedOf(head, pass.n_rows()); };
  MultiplyHeads(space_, weights_.v, own_, pass.n_rows(), attended, results_, config_.value_dim,
                thread);
}

void LatentAttention::QuantiseResults(const Pass& pass, int thread) const noexcept {
  const int first = own_.begin * config_.value_dim;
  const auto columns = space_.pool.ShareOf(own_.n() * config_.value_dim, thread, tensor::kBlock);
  Quantise(space_.kernels, results_, 0, pass.n_rows(), first + columns.begin, first + columns.end);
}

void LatentAttention::Output(const Pass& pass, int thread) const noexcept {
  AddProduct(space_, weights_.o, results_, pass.n_rows(), addition_, residual_, thread);
}

}  // namespace foretoken::model
