// SPDX-License-Identifier: Apache-2.0
#include "model/scratch.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernels.h"
#include "tensor/block_layout.h"

namespace foretoken::model {
namespace {

std::int64_t RoundUp(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

template <typename T>
std::size_t BytesOf(const AlignedBuffer<T>& buffer) {
  return buffer.size() * sizeof(T);
}

// The largest sizes among the layers.
struct Widest {
  int q = 0, kv = 0, head_dim = 0, results = 0;
  int ffn = 0;  // the gated part of an input by layer uses the same memory
  int n_experts = 0, n_used = 0, expert = 0;
  LatentAttentionConfig latent = {};  // the largest of each number
  int kept = 0, recurrent = 0, work = 0;
  int coefficients = 0;  // of a local convolution

  explicit Widest(const ModelConfig& config) : ffn(config.layer_input) {
    for (const LayerConfig& layer : config.layers) {
      std::visit(
          [&](const auto& part) {
            if constexpr (requires { Note(part, config.dim); })
              Note(part, config.dim);
            else
              Note(part);
          },
          layer.mixer);
      if (layer.beside) Note(*layer.beside);
      std::visit([this](const auto& part) { Note(part); }, layer.feed_forward);
      if (layer.dense_part) Note(*layer.dense_part);
      if (layer.convolution)
        coefficients = std::max(coefficients, layer.convolution->coefficients(config.dim));
    }
  }
  void Note(const AttentionConfig& a) {
    q = std::max(q, a.n_heads * a.head_dim);
    results = std::max(results, q);
    kv = std::max(kv, a.n_kv_heads * a.head_dim);
    head_dim = std::max(head_dim, a.head_dim);
    if (a.output_gate) recurrent = std::max(recurrent, q);
  }
  void Note(const LatentAttentionConfig& a) {
    results = std::max(results, a.n_heads * a.value_dim);
    head_dim = std::max(head_dim, a.key_dim());
    latent.n_heads = std::max(latent.n_heads, a.n_heads);
    latent.q_rank = std::max(latent.q_rank, a.q_rank);
    latent.rank = std::max(latent.rank, a.rank);
    latent.head_dim = std::max(latent.head_dim, a.head_dim);
    latent.rope.n_rot = std::max(latent.rope.n_rot, a.rope.n_rot);
  }
  void Note(const ShortConvConfig&, int dim) {
    q = std::max(q, dim);
    kv = std::max(kv, dim);
    results = std::max(results, dim);
  }
  void Note(const DeltaNetConfig& d) {
    results = std::max(results, d.value_dim());
    kept = std::max(kept, d.kept());
    recurrent = std::max(recurrent, d.value_dim());
    work = std::max(work, d.head_dim * d.head_dim + kMostPositions * (3 * d.head_dim + 2));
  }
  void Note(const Mamba2Config& m) {
    results = std::max(results, m.inner());
    kept = std::max(kept, m.kept());
    recurrent = std::max(recurrent, m.inner());
    work = std::max(
        work, m.head_dim * m.state_size + kMostPositions * (2 * (m.head_dim + m.state_size) + 1));
  }
  void Note(const NoPart&) {}
  void Note(const GatedFfnConfig& f) { ffn = std::max(ffn, f.width); }
  void Note(const ExpertsConfig& e) {
    n_experts = std::max(n_experts, e.n_experts);
    n_used = std::max(n_used, e.n_used);
    expert = std::max(expert, e.width);
    ffn = std::max(ffn, e.shared_width);
  }
};

ExpertsScratch ScratchOfExperts(const Widest& widest, int max_rows, int dim) {
  const auto used = static_cast<std::size_t>(max_rows) * static_cast<std::size_t>(widest.n_used);
  const int positions = max_rows * widest.n_used;
  return {.logits = ActivationMemory(max_rows, widest.n_experts, false),
          .scores = ActivationMemory(max_rows, widest.n_experts, false),
          .routed = ActivationMemory(max_rows, dim),
          .shared = ActivationMemory(max_rows, 1, false),
          .gate = ActivationMemory(positions, widest.expert),
          .up = ActivationMemory(positions, widest.expert, false),
          .sum = ActivationMemory(max_rows, dim, false),
          .chosen = AlignedBuffer<std::int32_t>(used),
          .weights = AlignedBuffer<float>(used),
          .begins = AlignedBuffer<std::int32_t>(static_cast<std::size_t>(widest.n_experts) + 1),
          .rows = AlignedBuffer<std::int32_t>(used),
          .row_weights = AlignedBuffer<float>(used)};
}

LatentScratch ScratchOf(const LatentAttentionConfig& widest, int max_rows) {
  const int n = widest.n_heads;
  return {.q_a = ActivationMemory(max_rows, widest.q_rank),
          .q = ActivationMemory(max_rows, n * widest.query_dim()),
          .key = ActivationMemory(max_rows, widest.key_dim(), false),
          .queries = ActivationMemory(max_rows, n * widest.key_dim(), false),
          .attended = ActivationMemory(max_rows, n * widest.rank)};
}

// The longest message of a gather. Rows as numbers take more than rows in int8 form.
std::size_t LongestGather(const Widest& widest, const ModelConfig& c, int max_rows,
                          int max_logit_rows, int n_ranks) {
  std::size_t longest = 0;
  const auto note = [&](std::int64_t n_rows, std::int64_t width) {
    const auto row = static_cast<std::size_t>(width) * sizeof(float);
    longest =
        std::max(longest, std::min(static_cast<std::size_t>(n_rows) * row, kGatherBytes + row));
  };
  for (const int width : {c.dim, widest.q, widest.results, widest.ffn, widest.kept,
                          widest.coefficients, c.layer_input * c.n_layers()})
    note(max_rows, width);
  note(std::int64_t{max_rows} * widest.n_used, widest.expert);
  note(max_logit_rows, c.vocabulary);
  note(std::int64_t{n_ranks} * max_logit_rows, sizeof(RankBest) / sizeof(float));
  return longest;
}

ChoiceScratch ScratchOfChoices(int max_logit_rows, int n_threads) {
  const std::int64_t stride = RoundUp(max_logit_rows, 16);
  const auto rows = static_cast<std::size_t>(max_logit_rows),
             all = static_cast<std::size_t>(n_threads * stride);
  return {.stride = stride,
          .bests = AlignedBuffer<kernels::PartBest>(all),
          .sums = AlignedBuffer<double>(all),
          .winners = AlignedBuffer<kernels::RaceWinner>(all),
          .rank_bests = AlignedBuffer<RankBest>(rows),
          .rank_sums = AlignedBuffer<double>(rows),
          .rank_winners = AlignedBuffer<kernels::RaceWinner>(rows),
          .best = AlignedBuffer<kernels::PartBest>(rows),
          .scales = AlignedBuffer<float>(rows),
          .chosen = AlignedBuffer<Token>(rows)};
}

RecurrentScratch RecurrentScratchOf(const Widest& widest, int max_rows, int n_threads) {
  RecurrentScratch scratch = {.inputs = ActivationMemory(max_rows, widest.kept, false),
                              .gate = ActivationMemory(max_rows, widest.recurrent, false)};
  scratch.work_stride = RoundUp(widest.work, 32);
  scratch.work = AlignedBuffer<float>(static_cast<std::size_t>(n_threads * scratch.work_stride));
  return scratch;
}

SelectorScratch SelectorScratchOf(const ModelConfig& c, int max_logit_rows, int n_threads) {
  const HeadConfig& head = *c.head;
  const auto rows = static_cast<std::size_t>(max_logit_rows),
             n = static_cast<std::size_t>(head.n_candidates);
  SelectorScratch scratch = {.gates = ActivationMemory(max_logit_rows, head.selector_rank, false),
                             .columns = AlignedBuffer<std::int32_t>(rows * n),
                             .scores = AlignedBuffer<float>(rows * n * n)};
  const std::int64_t numbers = std::int64_t{head.selector_rank} * (head.n_candidates + 1);
  scratch.work_stride = RoundUp(std::max<std::int64_t>(numbers, c.vocabulary / 64 + 1), 32);
  scratch.work = AlignedBuffer<float>(static_cast<std::size_t>(n_threads * scratch.work_stride));
  return scratch;
}

}  // namespace

ActivationMemory::ActivationMemory(int max_rows, int max_width, bool quantised)
    : max_width_(max_width) {
  const auto rows = static_cast<std::size_t>(max_rows);
  x_ = AlignedBuffer<float>(rows * static_cast<std::size_t>(RoundUp(max_width, 16)));
  if (!quantised) return;
  const auto width = static_cast<std::size_t>(RoundUp(max_width, tensor::kBlock));
  q_ = AlignedBuffer<std::int8_t>(rows * width);
  d_ = AlignedBuffer<float>(rows * width / tensor::kBlock);
  s_ = AlignedBuffer<std::int32_t>(rows * width / tensor::kBlock * 2);
}

Activation ActivationMemory::View(int width) noexcept {
  FORETOKEN_CHECK(width <= max_width_);
  return {.x = x_.data(),
          .stride = RoundUp(width, 16),
          .width = width,
          .q = q_.data(),
          .d = d_.data(),
          .s = s_.data()};
}

std::size_t ActivationMemory::size_bytes() const noexcept {
  return BytesOf(x_) + BytesOf(q_) + BytesOf(d_) + BytesOf(s_);
}

std::size_t ExpertsScratch::size_bytes() const noexcept {
  std::size_t bytes =
      BytesOf(chosen) + BytesOf(weights) + BytesOf(begins) + BytesOf(rows) + BytesOf(row_weights);
  for (const ActivationMemory* const memory :
       {&logits, &scores, &routed, &shared, &gate, &up, &sum})
    bytes += memory->size_bytes();
  return bytes;
}

std::size_t LatentScratch::size_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const ActivationMemory* const memory : {&q_a, &q, &key, &queries, &attended})
    bytes += memory->size_bytes();
  return bytes;
}

std::size_t RecurrentScratch::size_bytes() const noexcept {
  return inputs.size_bytes() + gate.size_bytes() + BytesOf(work);
}

std::size_t SelectorScratch::size_bytes() const noexcept {
  return gates.size_bytes() + BytesOf(columns) + BytesOf(scores) + BytesOf(work);
}

std::size_t Scratch::size_bytes() const noexcept {
  std::size_t bytes = experts.size_bytes() + latent.size_bytes() + recurrent.size_bytes() +
                      selector.size_bytes() + BytesOf(not_finite) + BytesOf(attention_scratch) +
                      BytesOf(row_len) + gathered.size_bytes();
  for (const ActivationMemory* const memory :
       {&residual, &normed, &q, &k, &v, &attention, &gate, &up, &delta, &sum, &last, &mixed, &pair,
        &coefficients, &next, &layer_inputs, &layer_embeddings, &logits})
    bytes += memory->size_bytes();
  return bytes;
}

Scratch::Scratch(const ModelConfig& c, int max_rows, int max_logit_rows, int n_threads,
                 int n_ranks) {
  const Widest widest(c);
  residual = ActivationMemory(max_rows, c.dim, false);
  normed = ActivationMemory(max_rows, c.dim);
  q = ActivationMemory(max_rows, widest.q, false);
  k = ActivationMemory(max_rows, widest.kv, false);
  v = ActivationMemory(max_rows, widest.kv, false);
  attention = ActivationMemory(max_rows, widest.results);
  if (widest.latent.n_heads != 0) latent = ScratchOf(widest.latent, max_rows);
  if (widest.recurrent != 0) recurrent = RecurrentScratchOf(widest, max_rows, n_threads);
  gate = ActivationMemory(max_rows, widest.ffn);
  up = ActivationMemory(max_rows, widest.ffn, false);
  if (widest.n_experts != 0) experts = ScratchOfExperts(widest, max_rows, c.dim);
  delta = ActivationMemory(max_rows, c.dim, false);
  sum = ActivationMemory(max_rows, c.dim, false);
  last = ActivationMemory(max_logit_rows, c.dim);
  if (c.layer_input != 0) {
    const int width = c.layer_input * c.n_layers();
    layer_inputs = ActivationMemory(max_rows, width, false);
    layer_embeddings = ActivationMemory(max_rows, width, false);
  }
  if (c.head) {
    const int target_dim = c.head->reads_cache ? c.head->target_dim : 0;
    pair = ActivationMemory(max_rows, 2 * std::max(c.dim, target_dim));
    next = ActivationMemory(max_logit_rows, target_dim, false);
    mixed = ActivationMemory(max_rows,
                             static_cast<int>(c.head->feature_layers.size()) * c.head->target_dim);
  }
  coefficients = ActivationMemory(max_rows, widest.coefficients, false);
  if (c.head && c.head->n_candidates != 0)
    selector = SelectorScratchOf(c, max_logit_rows, n_threads);
  logits = ActivationMemory(max_logit_rows, c.vocabulary, false);
  // Threads write no cache line of another thread.
  not_finite_stride = RoundUp(max_logit_rows, 64);
  not_finite = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(n_threads) *
                                           static_cast<std::size_t>(not_finite_stride));
  attention_scratch_stride =
      RoundUp(static_cast<std::int64_t>(kernels::AttentionScratchFloats(widest.head_dim)), 32);
  attention_scratch = AlignedBuffer<float>(static_cast<std::size_t>(n_threads) *
                                           static_cast<std::size_t>(attention_scratch_stride));
  row_len = AlignedBuffer<std::int32_t>(static_cast<std::size_t>(max_rows));
  if (c.head) certainties = AlignedBuffer<float>(static_cast<std::size_t>(max_logit_rows));
  if (n_ranks == 1) return;
  choices = ScratchOfChoices(max_logit_rows, n_threads);
  gathered = AlignedBytes(LongestGather(widest, c, max_rows, max_logit_rows, n_ranks));
  gather_begins = AlignedBuffer<std::int32_t>(static_cast<std::size_t>(n_ranks) + 1);
}

}  // namespace foretoken::model
