// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/experts/experts.h"

#include <algorithm>

#include "base/files/read_ahead.h"
#include "model/blocks/experts/expert_choice.h"

namespace foretoken::model {
namespace {

// Columns that a thread computes of a part, whole blocks of the int8 form.
constexpr int kUnit = tensor::kBlock;
constexpr int kUnitTiles = kUnit / tensor::kTileOutputs;

int UnitsOf(const Linear& w) {
  return (w.n_tiles + kUnitTiles - 1) / kUnitTiles;
}

// Reading the weights of a unit from memory takes about as long as multiplying them by so many
// rows.
constexpr std::int64_t kReadRows = 6;

// Deals out the units of several parts one after another, so that threads get the same cost.
class UnitShares {
 public:
  UnitShares(std::int64_t total, int thread, int team)
      : begin_(total * thread / team), end_(total * (thread + 1) / team) {}

  // The units of the next part that are this thread's. Each costs `cost`.
  ThreadPool::Share Next(int units, std::int64_t cost) noexcept {
    const auto at = [&](std::int64_t bound) {
      const std::int64_t before = (bound - part_ + cost - 1) / cost;
      return static_cast<int>(std::clamp<std::int64_t>(bound <= part_ ? 0 : before, 0, units));
    };
    const ThreadPool::Share share = {at(begin_), at(end_)};
    part_ += units * cost;
    return share;
  }

 private:
  const std::int64_t begin_, end_;
  std::int64_t part_ = 0;  // where the next part begins
};

// x[i] += bias[i] for i in [begin, end), where there is a bias.
void Add(const float* bias, int begin, int end, float* x) noexcept {
  if (bias == nullptr) return;
  for (int i = begin; i < end; ++i) x[i] += bias[i];
}
const float* RowOf(const float* bias, int row, int width) noexcept {
  return bias == nullptr ? bias : bias + std::int64_t{row} * width;
}

Activation ViewOrNothing(ActivationMemory& memory, int width) {
  return width == 0 ? Activation{} : memory.View(width);
}

}  // namespace

Experts::Experts(const Workspace& space, const ExpertsConfig& config, const ExpertsWeights& weights,
                 const LayerPlace& place, const Activation& to)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      quantise_input_((weights.router_norm == nullptr && weights.router.quantised()) ||
                      weights.gate.quantised() || weights.up.quantised() ||
                      weights.shared_router.quantised() || weights.shared.gate.quantised() ||
                      weights.shared.up.quantised()),
      gate_function_(KernelOf(config.function, space.kernels)),
      addition_{
          .norm = weights.post_norm, .norm_eps = place.norm_eps, .scale = place.residual_scale},
      residual_(space.scratch.residual.View(place.dim)),
      to_(to),
      normed_(space.scratch.normed.View(place.dim)),
      router_input_(weights.router_norm == nullptr ? normed_
                                                   : space.scratch.experts.routed.View(place.dim)),
      logits_(space.scratch.experts.logits.View(config.n_experts)),
      scores_(space.scratch.experts.scores.View(config.n_experts)),
      shared_gate_(space.scratch.experts.shared.View(1)),
      gate_(space.scratch.experts.gate.View(config.width)),
      up_(space.scratch.experts.up.View(config.width)),
      shared_(ViewOrNothing(space.scratch.gate, config.shared_width)),
      shared_up_(ViewOrNothing(space.scratch.up, config.shared_width)),
      delta_(space.scratch.delta.View(place.dim)),
      sum_(space.scratch.experts.sum.View(place.dim)),
      gather_gate_(space, gate_, FormFor(weights.down.first),
                   ColumnsByRank(space.division, config.width), {.each = config.n_used}),
      gather_shared_(space, shared_, FormFor(weights.shared.down),
                     ColumnsByRank(space.division, config.shared_width)),
      gather_output_(space, weights.post_norm != nullptr ? sum_ : to, GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void Experts::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Experts::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Experts::Route>(*this, Split::kOther));
  phases.push_back(PhaseOf<&Experts::Choose>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Experts::Order>(*this, Split::kOther));
  if (weights_.paged) phases.push_back(PhaseOf<&Experts::Page>(*this, Split::kOther));
  phases.push_back(PhaseOf<&Experts::GateUp>(*this, Split::kOther));
  gather_gate_.AddPhases(phases);
  if (config_.shared_width != 0) gather_shared_.AddPhases(phases);
  phases.push_back(PhaseOf<&Experts::Down>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
  if (weights_.post_norm != nullptr)
    phases.push_back(PhaseOf<&Experts::AddNormed>(*this, Split::kRows));
}

void Experts::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
                            normed_.Row(row));
  if (quantise_input_) Quantise(space_.kernels, normed_, rows);
  if (weights_.router_norm == nullptr) return;
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), weights_.router_norm, place_.dim, place_.norm_eps,
                            router_input_.Row(row));
  if (weights_.router.quantised()) Quantise(space_.kernels, router_input_, rows);
}

void Experts::Route(const Pass& pass, int thread) const noexcept {
  MultiplyAll(
      space_, pass.n_rows(),
      {{weights_.router, router_input_, logits_}, {weights_.shared_router, normed_, shared_gate_}},
      thread);
}

void Experts::Choose(const Pass& pass, int thread) const noexcept {
  ExpertsScratch& scratch = space_.scratch.experts;
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    const std::int64_t at = std::int64_t{row} * config_.n_used;
    Add(weights_.router_bias, 0, config_.n_experts, logits_.Row(row));
    ChooseExperts(space_.kernels, config_, logits_.Row(row), weights_.selection_bias,
                  scores_.Row(row), scratch.chosen.data() + at, scratch.weights.data() + at);
    if (weights_.scales != nullptr)
      for (std::int64_t i = at; i < at + config_.n_used; ++i)
        scratch.weights.data()[i] *= weights_.scales[scratch.chosen.data()[i]];
    if (config_.shared_gate)
      *shared_gate_.Row(row) = Sigmoid(space_.kernels, *shared_gate_.Row(row));
  }
}

// One thread orders all choices by expert: it counts, adds up, and deals out.
void Experts::Order(const Pass& pass, int thread) const noexcept {
  if (thread != 0) return;
  ExpertsScratch& scratch = space_.scratch.experts;
  std::int32_t* const begins = scratch.begins.data();
  const int n = pass.n_rows() * config_.n_used;
  std::fill_n(begins, config_.n_experts + 1, 0);
  for (int i = 0; i < n; ++i) ++begins[scratch.chosen.data()[i] + 1];
  for (int e = 0; e < config_.n_experts; ++e) {
    scratch.n_distinct += begins[e + 1] != 0;
    begins[e + 1] += begins[e];
  }
  for (int i = n; i-- > 0;) {  // from behind, so that begins[e + 1] ends where expert e begins
    const std::int32_t at = --begins[scratch.chosen.data()[i] + 1];
    scratch.rows.data()[at] = i / config_.n_used;
    scratch.row_weights.data()[at] = scratch.weights.data()[i];
  }
  std::copy(begins + 1, begins + config_.n_experts + 1, begins);
  begins[config_.n_experts] = n;
}

Experts::Rows Experts::RowsOf(int expert) const noexcept {
  const std::int32_t* const begins = space_.scratch.experts.begins.data();
  return {begins[expert], begins[expert + 1]};
}

Experts::Part Experts::PartOf(int expert) const noexcept {
  const int first = RowsOf(expert).begin;
  return {.gate = weights_.gate.Of(expert),
          .up = weights_.up.Of(expert),
          .gate_bias = RowOf(weights_.gate_bias, expert, config_.width),
          .up_bias = RowOf(weights_.up_bias, expert, config_.width),
          .quantises = weights_.down.quantised(),
          .y = gate_.From(first),
          .up_y = up_.From(first)};
}

// The threads share the chosen experts, so that all reading begins before the first product.
void Experts::Page(const Pass&, int thread) const noexcept {
  const int team = space_.pool.team();
  for (int e = 0, chosen = 0; e < config_.n_experts; ++e) {
    if (RowsOf(e).n() == 0 || chosen++ % team != thread) continue;
    for (const ExpertLinear* const w : {&weights_.gate, &weights_.up, &weights_.down})
      if (w->expert_bytes != 0) ReadAhead({w->Of(e).tiles, w->expert_bytes});
  }
}

// function(Wgate h) * (Wup h), in the columns of the units.
void Experts::Activate(const Part& part, const std::int32_t* x_rows, int n_rows,
                       ThreadPool::Share units) const noexcept {
  if (units.begin >= units.end) return;
  const int own = part.gate.first_tile, first = own + units.begin * kUnitTiles,
            last = own + std::min(units.end * kUnitTiles, part.gate.n_tiles);
  MultiplyRows(space_.kernels, part.gate, normed_, x_rows, n_rows, part.y, first, last);
  if (config_.gated)
    MultiplyRows(space_.kernels, part.up, normed_, x_rows, n_rows, part.up_y, first, last);
  const int begin = first * tensor::kTileOutputs,
            end = std::min(last * tensor::kTileOutputs, part.y.width);
  for (int row = 0; row < n_rows; ++row) {
    float *const gate = part.y.Row(row), *const up = part.up_y.Row(row);
    Add(part.gate_bias, begin, end, gate);
    Add(part.up_bias, begin, end, up);
    gate_function_(gate + begin, up + begin, end - begin, gate + begin);
  }
  if (part.quantises) Quantise(space_.kernels, part.y, 0, n_rows, begin, end);
}

void Experts::GateUp(const Pass& pass, int thread) const noexcept {
  const int units = UnitsOf(weights_.gate.first), shared_units = UnitsOf(weights_.shared.gate);
  const auto cost = [](int n_rows) { return kReadRows + n_rows; };
  std::int64_t total = shared_units * cost(pass.n_rows());
  for (int e = 0; e < config_.n_experts; ++e)
    if (const int n = RowsOf(e).n(); n != 0) total += units * cost(n);
  UnitShares shares(total, thread, space_.pool.team());
  const std::int32_t* const x_rows = space_.scratch.experts.rows.data();
  for (int e = 0; e < config_.n_experts; ++e) {
    const Rows rows = RowsOf(e);
    if (rows.n() != 0)
      Activate(PartOf(e), x_rows + rows.begin, rows.n(), shares.Next(units, cost(rows.n())));
  }
  if (shared_units == 0) return;
  const Part shared = {.gate = weights_.shared.gate,
                       .up = weights_.shared.up,
                       .gate_bias = nullptr,
                       .up_bias = nullptr,
                       .quantises = weights_.shared.down.quantised(),
                       .y = shared_,
                       .up_y = shared_up_};
  Activate(shared, nullptr, pass.n_rows(), shares.Next(shared_units, cost(pass.n_rows())));
}

// sum += weight * product, for the columns of the tiles.
void Experts::AddExperts(ThreadPool::Share tiles) const noexcept {
  const ExpertsScratch& scratch = space_.scratch.experts;
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, place_.dim);
  for (int e = 0; e < config_.n_experts; ++e) {
    const Rows rows = RowsOf(e);
    if (rows.n() == 0) continue;
    Multiply(space_.kernels, weights_.down.Of(e), gate_.From(rows.begin), rows.n(), delta_, false,
             tiles.begin, tiles.end);
    for (int i = 0; i < rows.n(); ++i) {
      float* const to = sum_.Row(scratch.rows.data()[rows.begin + i]);
      float* const from = delta_.Row(i);
      Add(RowOf(weights_.down_bias, e, place_.dim), begin, end, from);
      const float weight = scratch.row_weights.data()[rows.begin + i];
      for (int column = begin; column < end; ++column) to[column] += weight * from[column];
    }
  }
}

void Experts::AddShared(int n_rows, ThreadPool::Share tiles) const noexcept {
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, place_.dim);
  Multiply(space_.kernels, weights_.shared.down, shared_, n_rows, delta_, false, tiles.begin,
           tiles.end);
  for (int row = 0; row < n_rows; ++row) {
    float* const to = sum_.Row(row);
    const float* const from = delta_.Row(row);
    const float weight = config_.shared_gate ? *shared_gate_.Row(row) : 1;
    for (int column = begin; column < end; ++column) to[column] += weight * from[column];
  }
}

// A thread computes the same columns of all parts, so nobody else adds to them.
void Experts::Down(const Pass& pass, int thread) const noexcept {
  const auto tiles = space_.TilesOf(weights_.down.first, thread);
  const int begin = tiles.begin * tensor::kTileOutputs,
            end = std::min(tiles.end * tensor::kTileOutputs, place_.dim);
  if (begin >= end) return;
  for (int row = 0; row < pass.n_rows(); ++row)
    std::fill(sum_.Row(row) + begin, sum_.Row(row) + end, 0.0f);
  AddExperts(tiles);
  if (config_.shared_width != 0) AddShared(pass.n_rows(), tiles);
  if (weights_.post_norm != nullptr) return;
  for (int row = 0; row < pass.n_rows(); ++row) {
    float* const to = to_.Row(row);
    const float* const from = sum_.Row(row);
    for (int column = begin; column < end; ++column)
      to[column] += place_.residual_scale * from[column];
  }
}

void Experts::AddNormed(const Pass& pass, int thread) const noexcept {
  model::AddNormed(space_, addition_, sum_, to_, space_.RowsOf(pass, thread));
}

}  // namespace foretoken::model
