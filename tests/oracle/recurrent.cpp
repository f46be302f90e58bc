// SPDX-License-Identifier: Apache-2.0
// The mixers with a convolution or a state.
#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/arithmetic.h"
#include "oracle/oracle.h"

namespace foretoken::oracle {

// The inputs of the convolution stand in place of keys.
Oracle::Row Oracle::Mix(const model::LayerConfig& layer, const model::ShortConvConfig& config,
                        const Row& h, int position, Text::Cache& cache) const {
  const Row in = Multiply(NameOf(layer, "shortconv.in_proj.weight"), h);
  const Row taps = Vector(NameOf(layer, "shortconv.conv.weight"));
  const std::size_t dim = h.size(), n = static_cast<std::size_t>(config.taps);
  Row u(dim), y(dim, 0.0f);
  for (std::size_t i = 0; i < dim; ++i) u[i] = in[2 * dim + i] * in[i];
  cache.keys.push_back(u);
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::ptrdiff_t>(position) - static_cast<std::ptrdiff_t>(n) + 1 +
                      static_cast<std::ptrdiff_t>(j);
      if (at >= 0) y[i] += taps[i * n + j] * cache.keys[static_cast<std::size_t>(at)][i];
    }
    y[i] *= in[dim + i];
  }
  return Multiply(NameOf(layer, "shortconv.out_proj.weight"), y);
}

float Oracle::Convolved(const std::vector<Row>& inputs, const Row& weights, std::size_t taps,
                        std::size_t i, float bias) {
  float c = bias;
  for (std::size_t j = 0; j < taps; ++j)
    if (inputs.size() + j >= taps) c += weights[i * taps + j] * inputs[inputs.size() + j - taps][i];
  return c / (1.0f + Exp(-c));
}

// The inputs of the convolution stand in place of keys, the state of each head in place of the values
// of a position.
Oracle::Row Oracle::Mix(const model::LayerConfig& layer, const model::DeltaNetConfig& config,
                        const Row& h, int position, Text::Cache& cache) const {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  const auto name = [&](const char* part) { return NameOf(layer, part); };
  const std::size_t n = size(config.head_dim), heads = size(config.n_value_heads),
                    keys = size(config.n_key_heads), taps = size(config.taps);
  cache.keys.push_back(Multiply(name("attn_qkv.weight"), h));
  const Row weights = Vector(name("ssm_conv1d.weight")), dt = Vector(name("ssm_dt.bias")),
            a = Vector(name("ssm_a")), z = Multiply(name("attn_gate.weight"), h);
  Row c(size(config.convolved()));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = Convolved(cache.keys, weights, taps, i, 0);
  Row beta, alpha;
  if (config.grouped) {
    const Row both = Multiply(name("ssm_ba.weight"), h);
    const std::size_t group = heads / keys;
    for (std::size_t i = 0; i < heads; ++i) {
      beta.push_back(both[i / group * 2 * group + i % group]);
      alpha.push_back(both[i / group * 2 * group + group + i % group]);
    }
  } else {
    beta = Multiply(name("ssm_beta.weight"), h), alpha = Multiply(name("ssm_alpha.weight"), h);
  }
  Row states = position == 0 ? Row(heads * n * n, 0.0f) : cache.values.back(), y;
  const auto unit = [&](std::size_t at, float scale) {
    std::array<float, 16> lanes{};
    for (std::size_t i = 0; i < n; ++i)
      lanes[i % 16] = std::fma(c[at + i], c[at + i], lanes[i % 16]);
    const float eps = config_.norm_eps * config_.norm_eps / static_cast<float>(n);
    const float factor = 1.0f / std::sqrt(Fold(lanes) / static_cast<float>(n) + eps);
    Row x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = (c[at + i] * factor) * scale;
    return x;
  };
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t key = config.grouped ? head / (heads / keys) : head % keys;
    const Row q = unit(key * n, 1.0f / static_cast<float>(n)),
              k = unit((keys + key) * n, static_cast<float>(std::sqrt(1.0 / config.head_dim)));
    const float decay = Exp(a[head] * Softplus(alpha[head] + dt[head])), b = Sigmoid(beta[head]);
    Row out(n);
    for (std::size_t j = 0; j < n; ++j) {
      float* const s = &states[head * n * n + j];
      float known = 0, o = 0;
      for (std::size_t i = 0; i < n; ++i) known = std::fma(k[i], s[i * n] * decay, known);
      const float d = (c[(2 * keys + head) * n + j] - known) * b;
      for (std::size_t i = 0; i < n; ++i) {
        s[i * n] = std::fma(k[i], d, s[i * n] * decay);
        o = std::fma(q[i], s[i * n], o);
      }
      out[j] = o;
    }
    out = Norm(out, name("ssm_norm.weight"));
    for (std::size_t j = 0; j < n; ++j) {
      const float gate = z[head * n + j];
      y.push_back((gate / (1.0f + Exp(-gate))) * out[j]);
    }
  }
  cache.values.push_back(states);
  return Multiply(name("ssm_out.weight"), y);
}

Oracle::Row Oracle::Mix(const model::LayerConfig& layer, const model::Mamba2Config& config,
                        const Row& h, int position, Text::Cache& cache) const {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  const auto name = [&](const char* part) { return NameOf(layer, part); };
  const std::size_t n = size(config.head_dim), heads = size(config.n_heads),
                    n_state = size(config.state_size), inner = size(config.inner());
  const Row in = Multiply(name("ssm_in.weight"), h), weights = Vector(name("ssm_conv1d.weight")),
            bias = Vector(name("ssm_conv1d.bias")), dt = Vector(name("ssm_dt.bias")),
            a = Vector(name("ssm_a")), d = Vector(name("ssm_d")),
            norm = Vector(name("ssm_norm.weight"));
  cache.keys.push_back(Part(in, config.inner(), config.convolved()));
  Row c(size(config.convolved()));
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = Convolved(cache.keys, weights, size(config.taps), i, bias[i]);
  Row states = position == 0 ? Row(inner * n_state, 0.0f) : cache.values.back(), y(inner);
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t group = head / (heads / size(config.n_groups)), b = inner + group * n_state,
                      last = b + size(config.n_groups) * n_state;
    const float t = Softplus(in[inner + c.size() + head] + dt[head]), decay = Exp(t * a[head]);
    for (std::size_t j = head * n; j < (head + 1) * n; ++j) {
      float out = 0;
      for (std::size_t i = 0; i < n_state; ++i) {
        float& s = states[j * n_state + i];
        s = std::fma(c[b + i], t * c[j], s * decay);
        out = std::fma(c[last + i], s, out);
      }
      out += d[head] * c[j];
      y[j] = (in[j] / (1.0f + Exp(-in[j]))) * out;
    }
  }
  cache.values.push_back(states);
  const int width = config.inner() / config.n_groups;
  for (int at = 0; at < config.inner() && !norm.empty(); at += width) {
    const Row normed = Norm(Part(y, at, width), Part(norm, at, width));
    std::copy(normed.begin(), normed.end(), y.begin() + at);
  }
  return Multiply(name("ssm_out.weight"), y);
}

}  // namespace foretoken::oracle
