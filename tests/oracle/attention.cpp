// SPDX-License-Identifier: Apache-2.0
// The mixers that attend to keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "oracle/arithmetic.h"
#include "oracle/oracle.h"

namespace foretoken::oracle {

// By pair, every scaling applied.
std::vector<double> Oracle::Frequencies(const model::RopeConfig& rope) const {
  const Row factors = Vector(fmt::format("{}.weight", rope.factors));
  // The pair that makes so many turns within the original context.
  const auto turns = [&](double n) {
    return rope.n_rot * std::log(rope.original_context / (n * 2 * std::numbers::pi)) /
           (2 * std::log(rope.freq_base));
  };
  const double fast = std::max(0.0, std::floor(turns(rope.yarn_beta_fast)));
  const double slow = std::min(rope.n_rot - 1.0, std::ceil(turns(rope.yarn_beta_slow)));
  std::vector<double> all;
  for (int i = 0; i < rope.n_rot / 2; ++i) {
    double f = std::pow(rope.freq_base, -2.0 * i / rope.n_rot);
    if (!factors.empty()) f /= static_cast<double>(factors[static_cast<std::size_t>(i)]);
    double keep = 0;  // the share of the frequency that is not interpolated
    if (rope.yarn) keep = 1 - std::clamp((i - fast) / std::max(0.001, slow - fast), 0.0, 1.0);
    keep *= rope.yarn_ext_factor;
    all.push_back(f * rope.freq_scale * (1 - keep) + f * keep);
  }
  return all;
}

void Oracle::Rotate(Row& heads, const model::RopeConfig& rope, int head_dim, int position) const {
  const std::vector<double> frequencies = Frequencies(rope);
  const double log_factor = 0.1 * std::log(1 / rope.freq_scale);
  const double magnitude =
      rope.attention_factor *
      (rope.yarn ? (1 + log_factor) / (1 + rope.yarn_log_multiplier * log_factor) : 1);
  const std::size_t half = frequencies.size();
  for (std::size_t h = 0; h < heads.size(); h += static_cast<std::size_t>(head_dim))
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position * frequencies[i];
      const float c = static_cast<float>(std::cos(angle) * magnitude),
                  s = static_cast<float>(std::sin(angle) * magnitude);
      float& a = heads[h + (rope.interleaved ? 2 * i : i)];
      float& b = heads[h + (rope.interleaved ? 2 * i + 1 : i + half)];
      const float a0 = a, b0 = b;
      a = std::fma(a0, c, -(b0 * s));
      b = std::fma(a0, s, b0 * c);
    }
}

void Oracle::NormAndRotate(Row& heads, const model::AttentionConfig& config, int position,
                           const std::string& norm) const {
  const auto head_dim = static_cast<std::size_t>(config.head_dim);
  if (config.qk_norm == model::QkNorm::kRow) heads = Norm(heads, norm);
  if (config.qk_norm == model::QkNorm::kHead)
    for (std::size_t h = 0; h < heads.size(); h += head_dim) {
      const auto begin = heads.begin() + static_cast<std::ptrdiff_t>(h);
      const Row normed = Norm(Row(begin, begin + config.head_dim), norm);
      std::copy(normed.begin(), normed.end(), begin);
    }
  if (config.rope) Rotate(heads, *config.rope, config.head_dim, position);
}

Oracle::Row Oracle::Attend(const model::AttentionConfig& config, const Row& queries,
                           const std::vector<Row>& keys, const std::vector<Row>& values,
                           const Row& sinks) {
  const auto dim = static_cast<std::size_t>(config.head_dim);
  const std::size_t group = static_cast<std::size_t>(config.n_heads / config.n_kv_heads);
  const float scale = config.scale != 0
                          ? config.scale
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  const auto window = static_cast<std::size_t>(config.window);
  const std::size_t first = window != 0 && keys.size() > window ? keys.size() - window : 0;
  Row out(queries.size());
  for (std::size_t head = 0; head < static_cast<std::size_t>(config.n_heads); ++head) {
    const std::size_t q_at = head * dim, k_at = head / group * dim;
    float m = -INFINITY, l = 0;
    if (!sinks.empty()) m = sinks[head], l = 1;
    Row acc(dim, 0.0f);
    for (std::size_t block = first / 32 * 32; block < keys.size(); block += 32) {
      const std::size_t n = std::min<std::size_t>(32, keys.size() - block);
      const std::size_t seen = first > block ? first - block : 0;
      std::array<float, 32> s{}, p{};
      float best = m;
      for (std::size_t j = seen; j < n; ++j) {
        float dot = 0;
        for (std::size_t d = 0; d < dim; ++d)
          dot = std::fma(queries[q_at + d], keys[block + j][k_at + d], dot);
        s[j] = scale * dot;
        if (config.soft_cap != 0) s[j] = Capped(s[j], config.soft_cap);
        best = std::max(best, s[j]);
      }
      const float c = Exp(m - best);
      std::array<float, 16> lanes{};
      for (std::size_t j = seen; j < n; ++j) {
        p[j] = Exp(s[j] - best);
        lanes[j % 16] += p[j];
      }
      l = std::fma(l, c, Fold(lanes));
      m = best;
      for (std::size_t d = 0; d < dim; ++d) {
        acc[d] = acc[d] * c;
        for (std::size_t j = seen; j < n; ++j)
          acc[d] = std::fma(p[j], values[block + j][k_at + d], acc[d]);
      }
    }
    for (std::size_t d = 0; d < dim; ++d) out[q_at + d] = acc[d] * (1.0f / l);
  }
  return out;
}

// With biases.
Oracle::Projections Oracle::Project(const model::LayerConfig& layer, const Row& x) const {
  const model::AttentionConfig& attention = layer.attention();
  const auto product = [&](const char* part) -> Row {
    Row y = Multiply(NameOf(layer, fmt::format("{}.weight", part)), x);
    Add(y, Vector(NameOf(layer, fmt::format("{}.bias", part))));
    return y;
  };
  if (attention.cache_layer >= 0) return {product("attn_q"), {}, {}};
  if (attention.keys_may_be_values && checkpoint_.Find(NameOf(layer, "attn_v.weight")) == nullptr) {
    const Row k = product("attn_k");
    return {product("attn_q"), k, k};
  }
  if (checkpoint_.Find(NameOf(layer, "attn_qkv.weight")) == nullptr)
    return {product("attn_q"), product("attn_k"), product("attn_v")};
  const Row all = product("attn_qkv");
  const int q = attention.n_heads * attention.head_dim,
            kv = attention.n_kv_heads * attention.head_dim;
  return {Part(all, 0, q), Part(all, q, kv), Part(all, q + kv, kv)};
}

void Oracle::RoundForCache(Row& x) const {
  if (!half_cache_) return;
  for (float& f : x) f = tensor::F16ToF32(tensor::F32ToF16(f));
}

Oracle::Row Oracle::Mix(const model::LayerConfig& layer, const model::AttentionConfig& attention,
                        const Row& h, int position, Text::Cache& cache) const {
  const auto weight = [&](std::string_view part) {
    return NameOf(layer, fmt::format("{}.weight", part));
  };
  const Row sinks = attention.sinks ? Vector(weight("attn_sinks")) : Row();
  auto [q, k, v] = Project(layer, h);
  Row gate;
  if (attention.output_gate) {
    const Row both = std::move(q);
    q.clear();
    for (int at = 0; at < static_cast<int>(both.size()); at += 2 * attention.head_dim) {
      const Row query = Part(both, at, attention.head_dim),
                own = Part(both, at + attention.head_dim, attention.head_dim);
      q.insert(q.end(), query.begin(), query.end());
      gate.insert(gate.end(), own.begin(), own.end());
    }
  }
  NormAndRotate(q, attention, position, weight("attn_q_norm"));
  if (attention.temperature_scale != 0) {
    const double steps = std::floor(1.0 * position / attention.temperature_length);
    const auto t = static_cast<float>(1 + attention.temperature_scale * std::log(1.0 + steps));
    for (float& f : q) f *= t;
  }
  if (!k.empty()) {
    NormAndRotate(k, attention, position, weight("attn_k_norm"));
    for (std::size_t at = 0; attention.v_norm && at < v.size();
         at += static_cast<std::size_t>(attention.head_dim)) {
      const Row head = Part(v, static_cast<int>(at), attention.head_dim);
      const Row normed = Norm(head, Row(head.size(), 1.0f));
      std::copy(normed.begin(), normed.end(), v.begin() + static_cast<std::ptrdiff_t>(at));
    }
    RoundForCache(k), RoundForCache(v);
    cache.keys.push_back(k), cache.values.push_back(v);
  }
  Row results = Attend(attention, q, cache.keys, cache.values, sinks);
  for (std::size_t i = 0; i < gate.size(); ++i) results[i] *= 1.0f / (1.0f + Exp(-gate[i]));
  Row attended = Multiply(weight("attn_output"), results);
  Add(attended, Vector(NameOf(layer, "attn_output.bias")));
  return attention.post_norm.empty() ? attended : Norm(attended, weight(attention.post_norm));
}

// All heads attend to the same keys, and values are the keys too.
Oracle::Row Oracle::Mix(const model::LayerConfig& layer, const model::LatentAttentionConfig& config,
                        const Row& h, int position, Text::Cache& cache) const {
  const int n_rot = config.rope.n_rot;
  const auto weight = [&](const char* part) {
    return NameOf(layer, fmt::format("{}.weight", part));
  };
  const auto rotated = [&](const Row& x, int at) {
    Row part = Part(x, at, n_rot);
    Rotate(part, config.rope, n_rot, position);
    return part;
  };
  const auto append = [](Row& x, const Row& more) { x.insert(x.end(), more.begin(), more.end()); };
  const Row q = config.q_rank == 0
                    ? Multiply(weight("attn_q"), h)
                    : Multiply(weight("attn_q_b"),
                               Norm(Multiply(weight("attn_q_a"), h), weight("attn_q_a_norm")));
  const Row both = Multiply(weight("attn_kv_a_mqa"), h);
  Row key = Norm(Part(both, 0, config.rank), weight("attn_kv_a_norm"));
  append(key, rotated(both, config.rank));
  RoundForCache(key);
  cache.keys.push_back(key), cache.values.push_back(key);
  Row queries, results;
  for (int head = 0; head < config.n_heads; ++head) {
    const int at = head * config.query_dim();
    append(queries, Multiply(weight("attn_k_b"), Part(q, at, config.head_dim), head));
    append(queries, rotated(q, at + config.head_dim));
  }
  const Row attended = Attend({.n_heads = config.n_heads,
                               .n_kv_heads = 1,
                               .head_dim = config.key_dim(),
                               .scale = config.scale},
                              queries, cache.keys, cache.values, {});
  for (int head = 0; head < config.n_heads; ++head)
    append(results, Multiply(weight("attn_v_b"),
                             Part(attended, head * config.key_dim(), config.rank), head));
  return Multiply(weight("attn_output"), results);
}

}  // namespace foretoken::oracle
