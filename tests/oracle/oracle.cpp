// SPDX-License-Identifier: Apache-2.0
#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "tensor/dtype.h"

namespace foretoken::oracle {
namespace {

float Exp(float x) {
  if (x < -87.33654f) return 0;
  if (x > 88.37626f) x = 88.37626f;
  const float n = std::fma(x, 1.44269504f, 12582912.0f) - 12582912.0f;
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float y = 1.9875691500e-4f;
  for (const float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    y = std::fma(y, r, c);
  y = std::fma(y, r * r, r) + 1.0f;
  return y * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

float Capped(float x, float cap) {
  const float f = 2.0f / cap;
  return cap * (1.0f - 2.0f / (Exp(x * f) + 1.0f));
}

// Folds 16 lanes 16 -> 8 -> 4 -> 2 -> 1.
template <typename T>
T Fold(std::array<T, 16> lanes) {
  for (std::size_t width = 8; width >= 1; width /= 2)
    for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

// One row of activations in int8 by blocks of 32.
struct Quantised {
  std::vector<int> q;
  std::vector<float> d;

  explicit Quantised(const std::vector<float>& x) {
    for (std::size_t b = 0; b < x.size(); b += 32) {
      float amax = 0;
      for (std::size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[b + i]));
      const float id = amax > 0 ? 127.0f / amax : 0;
      d.push_back(amax / 127.0f);
      for (std::size_t i = 0; i < 32; ++i)
        q.push_back(static_cast<int>(std::nearbyint(x[b + i] * id)));
    }
  }
};

// 32 values of a row, by their type's formula: x = scale[i / 16] * (q - offset), or scale * q +
// minimum. An integer sum is multiplied by `scale` if all 32 share one; K-quants of 2, 3 and 6
// bits have integer scales for their halves before that.
struct Values {
  std::array<int, 32> q{};
  std::array<int, 2> factor{1, 1};
  float scale = 0;
  std::optional<float> minimum;
  // Q2_K: a minimum for each half.
  bool has_half_minima = false;
  std::array<float, 2> half_minimum{};
};

template <typename Block>
Block Read(const std::byte* row, std::size_t index) {
  Block block;
  std::memcpy(&block, row + index * sizeof block, sizeof block);
  return block;
}

// 32 numbers of a table, two for each byte: the low four bits belong to the first half.
Values OfTable(const std::int8_t* table, const std::uint8_t* qs, float scale) {
  Values v;
  v.scale = scale;
  for (std::size_t i = 0; i < 32; ++i) v.q[i] = table[i < 16 ? qs[i] & 15 : qs[i - 16] >> 4];
  return v;
}

Values OfMXFP4(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockMXFP4>(row, b);
  return OfTable(tensor::kMxfp4Values, block.qs, std::ldexp(1.0f, block.e - 128));
}

Values OfIQ4_NL(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockIQ4_NL>(row, b);
  return OfTable(tensor::kIq4Values, block.qs, tensor::F16ToF32(block.d));
}

Values OfIQ4_XS(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockIQ4_XS>(row, b / 8);
  const std::size_t run = b % 8;
  const int low = run % 2 == 0 ? block.scales_l[run / 2] % 16 : block.scales_l[run / 2] / 16;
  const int scale = low + (block.scales_h >> (2 * run)) % 4 * 16 - 32;
  return OfTable(tensor::kIq4Values, block.qs + 16 * run,
                 tensor::F16ToF32(block.d) * static_cast<float>(scale));
}

// Two bits of each value: four runs share 32 bytes.
int TwoBits(const std::uint8_t* qs, std::size_t run, std::size_t i) {
  return qs[run / 4 * 32 + i] >> (run % 4 * 2) & 3;
}

Values OfQ3_K(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockQ3_K>(row, b / 8);
  const std::size_t run = b % 8;
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  for (std::size_t h = 0; h < 2; ++h) {
    const std::size_t part = 2 * run + h;
    const int low = part < 8 ? block.scales[part] % 16 : block.scales[part - 8] / 16;
    v.factor[h] = low + (block.scales[8 + part % 4] >> (part / 4 * 2)) % 4 * 16 - 32;
  }
  for (std::size_t i = 0; i < 32; ++i)
    v.q[i] = TwoBits(block.qs, run, i) + (block.hmask[i] >> run & 1) * 4 - 4;
  return v;
}

Values OfQ2_K(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockQ2_K>(row, b / 8);
  const std::size_t run = b % 8;
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  for (std::size_t h = 0; h < 2; ++h) {
    const int both = block.scales[2 * run + h];
    v.factor[h] = both % 16;
    v.half_minimum[h] = -(tensor::F16ToF32(block.dmin) * static_cast<float>(both / 16));
  }
  v.has_half_minima = true;
  for (std::size_t i = 0; i < 32; ++i) v.q[i] = TwoBits(block.qs, run, i);
  return v;
}

// For the 32-value types; the high four bits of a byte belong to the second half.
template <typename Block>
Values Simple(const std::byte* row, std::size_t b, int offset) {
  const auto block = Read<Block>(row, b);
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  if constexpr (requires { block.m; }) v.minimum = tensor::F16ToF32(block.m);
  std::uint32_t high = 0;
  if constexpr (requires { block.qh; }) std::memcpy(&high, block.qh, 4);
  for (std::size_t i = 0; i < 32; ++i) {
    const int low = i < 16 ? block.qs[i] & 15 : block.qs[i - 16] >> 4;
    v.q[i] = low + static_cast<int>(high >> i & 1) * 16 - offset;
  }
  return v;
}

Values OfQ8_0(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockQ8_0>(row, b);
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  std::copy_n(block.qs, 32, v.q.begin());
  return v;
}

// Six bits each of scale and minimum in twelve bytes: the first four runs' in the low bits of bytes
// 0-3 and 4-7, the others' in nibbles of bytes 8-11 and the top two bits of bytes 0-7.
template <typename Block>
Values KQuant(const std::byte* row, std::size_t b) {
  const auto block = Read<Block>(row, b / 8);
  const std::size_t run = b % 8;
  const auto& s = block.scales;
  const int scale = run < 4 ? s[run] % 64 : s[run + 4] % 16 + s[run - 4] / 64 * 16;
  const int minimum = run < 4 ? s[run + 4] % 64 : s[run + 4] / 16 + s[run] / 64 * 16;
  Values v;
  v.scale = tensor::F16ToF32(block.d) * static_cast<float>(scale);
  v.minimum = -(tensor::F16ToF32(block.dmin) * static_cast<float>(minimum));
  for (std::size_t i = 0; i < 32; ++i) {
    const int byte = block.qs[run / 2 * 32 + i];
    v.q[i] = run % 2 == 0 ? byte % 16 : byte / 16;
    if constexpr (requires { block.qh; }) v.q[i] += (block.qh[i] >> run & 1) * 16;
  }
  return v;
}

Values OfQ6_K(const std::byte* row, std::size_t b) {
  const auto block = Read<tensor::BlockQ6_K>(row, b / 8);
  const std::size_t half = b % 8 / 4, run = b % 4;
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  v.factor = {block.scales[b % 8 * 2], block.scales[b % 8 * 2 + 1]};
  for (std::size_t i = 0; i < 32; ++i) {
    const int low = block.ql[64 * half + 32 * (run % 2) + i] >> (run / 2 * 4) & 15;
    const int high = block.qh[32 * half + i] >> (2 * run) & 3;
    v.q[i] = low + 16 * high - 32;
  }
  return v;
}

Values Run(tensor::DType type, const std::byte* row, std::size_t b) {
  using tensor::DType;
  switch (type) {
    case DType::kQ4_0:
      return Simple<tensor::BlockQ4_0>(row, b, 8);
    case DType::kQ4_1:
      return Simple<tensor::BlockQ4_1>(row, b, 0);
    case DType::kQ5_0:
      return Simple<tensor::BlockQ5_0>(row, b, 16);
    case DType::kQ5_1:
      return Simple<tensor::BlockQ5_1>(row, b, 0);
    case DType::kQ4_K:
      return KQuant<tensor::BlockQ4_K>(row, b);
    case DType::kQ5_K:
      return KQuant<tensor::BlockQ5_K>(row, b);
    case DType::kQ6_K:
      return OfQ6_K(row, b);
    case DType::kMXFP4:
      return OfMXFP4(row, b);
    case DType::kIQ4_NL:
      return OfIQ4_NL(row, b);
    case DType::kIQ4_XS:
      return OfIQ4_XS(row, b);
    case DType::kQ3_K:
      return OfQ3_K(row, b);
    case DType::kQ2_K:
      return OfQ2_K(row, b);
    default:
      return OfQ8_0(row, b);
  }
}

float QuantisedDot(tensor::DType type, const std::byte* row, const Quantised& x) {
  float acc = 0;
  for (std::size_t b = 0; b < x.d.size(); ++b) {
    const Values v = Run(type, row, b);
    int sum = 0, xs = 0;
    std::array<int, 2> half_xs{};
    for (std::size_t i = 0; i < 32; ++i) {
      sum += v.factor[i / 16] * v.q[i] * x.q[32 * b + i];
      xs += x.q[32 * b + i];
      half_xs[i / 16] += x.q[32 * b + i];
    }
    acc = std::fma(static_cast<float>(sum), v.scale * x.d[b], acc);
    for (std::size_t h = 0; h < 2 && v.has_half_minima; ++h)
      acc = std::fma(v.half_minimum[h], x.d[b] * static_cast<float>(half_xs[h]), acc);
    if (v.minimum) acc = std::fma(*v.minimum, x.d[b] * static_cast<float>(xs), acc);
  }
  return acc;
}

}  // namespace

Oracle::Oracle(const formats::Checkpoint& checkpoint, const model::ModelConfig& config,
               bool half_cache)
    : checkpoint_(checkpoint), config_(config), half_cache_(half_cache) {}

Oracle::Row Oracle::Multiply(const std::string& name, const Row& x, int part) const {
  const formats::TensorView& t = *checkpoint_.Find(name);
  const auto& info = *tensor::FindDType(t.ggml_type);
  const auto n_out = static_cast<std::size_t>(t.shape[1]);
  const std::size_t row_bytes = t.data.size() / n_out / static_cast<std::size_t>(t.shape[2]);
  Row y(n_out), w(x.size());
  const bool integers = tensor::IsQuantised(info.tile);
  const Quantised quantised(integers ? x : Row{});
  for (std::size_t o = 0; o < n_out; ++o) {
    const std::byte* row = t.data.data() + (static_cast<std::size_t>(part) * n_out + o) * row_bytes;
    if (integers) {
      y[o] = QuantisedDot(info.type, row, quantised);
      continue;
    }
    tensor::Dequantize(info.type, row, static_cast<std::int64_t>(x.size()), w.data());
    float acc = 0;
    for (std::size_t k = 0; k < x.size(); ++k) acc = std::fma(w[k], x[k], acc);
    y[o] = acc;
  }
  return y;
}

Oracle::Row Oracle::Vector(const std::string& name) const {
  const formats::TensorView* t = checkpoint_.Find(name);
  if (t == nullptr) return {};
  Row row(static_cast<std::size_t>(t->shape[0] * t->shape[1]));
  tensor::Dequantize(tensor::FindDType(t->ggml_type)->type, t->data.data(),
                     t->shape[0] * t->shape[1], row.data());
  return row;
}

Oracle::Row Oracle::Norm(const Row& x, const std::string& weight) const {
  const Row w = Vector(weight);
  return w.empty() ? x : Norm(x, w);
}

Oracle::Row Oracle::Norm(const Row& x, const Row& w) const {
  std::array<float, 16> lanes{};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  const float scale =
      1.0f / std::sqrt(Fold(lanes) / static_cast<float>(x.size()) + config_.norm_eps);
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] * scale) * w[i];
  return y;
}

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

namespace {

void Add(std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < b.size(); ++i) a[i] += b[i];
}

// Values [begin, begin + n).
std::vector<float> Part(const std::vector<float>& x, int begin, int n) {
  return {x.begin() + begin, x.begin() + begin + n};
}

std::string NameOf(const model::LayerConfig& layer, std::string_view part) {
  return fmt::format("blk.{}.{}", layer.block, part);
}

// gelu(g) = g / (1 + Exp(-t)).
float GeluArgument(float g) {
  return (g * 1.5957691216f) * std::fma(g * g, 0.044715f, 1.0f);
}

void Softmax(std::vector<float>& x) {
  const float most = *std::max_element(x.begin(), x.end());
  std::array<double, 16> lanes{};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] += x[i] = Exp((x[i] - most) * 1.0f);
  const auto sum = static_cast<float>(Fold(lanes));
  for (float& v : x) v /= sum;
}

// The experts, the best first; of equal ones the lowest.
std::vector<std::size_t> Ranking(const std::vector<float>& scores) {
  std::vector<std::size_t> ids(scores.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return ids;
}

}  // namespace

// One expert's function(Wgate h) * (Wup h), then Wdown, with biases.
Oracle::Row Oracle::ExpertOf(const model::ExpertsConfig& config, const std::string& prefix,
                             const std::string& suffix, const Row& h, int part) const {
  const auto name = [&](const char* matrix) {
    return fmt::format("{}ffn_{}{}.weight", prefix, matrix, suffix);
  };
  const auto product = [&](const char* matrix, const Row& x) {
    Row y = Multiply(name(matrix), x, part);
    if (config.biases) {
      const Row biases = Vector(fmt::format("{}ffn_{}{}.bias", prefix, matrix, suffix));
      Add(y, Part(biases, part * static_cast<int>(y.size()), static_cast<int>(y.size())));
    }
    return y;
  };
  Row gate, up;
  if (!config.gated) {
    gate = up = product("up", h);
  } else if (checkpoint_.Find(name("gate_up")) != nullptr) {
    const Row both = product("gate_up", h);
    gate = Part(both, 0, config.width), up = Part(both, config.width, config.width);
  } else {
    gate = product("gate", h), up = product("up", h);
  }
  for (std::size_t j = 0; j < gate.size(); ++j) {
    float t = config.function == model::GateFunction::kGelu ? GeluArgument(gate[j]) : gate[j];
    if (config.function == model::GateFunction::kLimitedSwiglu) {
      gate[j] = std::min(gate[j], 7.0f);
      up[j] = std::clamp(up[j], -7.0f, 7.0f) + 1.0f;
      t = gate[j] * 1.702f;
    }
    if (config.function == model::GateFunction::kReluSquared)
      gate[j] = std::max(gate[j], 0.0f) * std::max(gate[j], 0.0f);
    else
      gate[j] = (gate[j] / (1.0f + Exp(-t))) * up[j];
  }
  return product("down", gate);
}

// The weight of each expert, and 0 for those that are not chosen.
std::vector<float> Oracle::ExpertWeights(const model::ExpertsConfig& config, Row p,
                                         const Row& bias) const {
  using model::ExpertGating;
  if (config.gating == ExpertGating::kSoftmax) Softmax(p);
  if (config.gating == ExpertGating::kSigmoid)
    for (float& x : p) x = 1.0f / (1.0f + Exp(-x));
  Row scores = p;
  for (std::size_t i = 0; i < bias.size(); ++i) scores[i] += bias[i];
  const std::size_t n = p.size() / static_cast<std::size_t>(config.n_groups);
  Row groups;
  for (std::size_t at = 0; at < p.size() && config.n_groups > 1; at += n) {
    Row group(scores.begin() + static_cast<std::ptrdiff_t>(at),
              scores.begin() + static_cast<std::ptrdiff_t>(at + n));
    std::sort(group.rbegin(), group.rend());
    groups.push_back(n == 1 ? group[0] : group[0] + group[1]);
  }
  const std::vector<std::size_t> best_groups = Ranking(groups);
  for (std::size_t i = static_cast<std::size_t>(config.n_used_groups); i < best_groups.size(); ++i)
    std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(best_groups[i] * n), n, -INFINITY);
  std::vector<std::size_t> chosen = Ranking(scores);
  chosen.resize(static_cast<std::size_t>(config.n_used));
  Row weights;
  for (const std::size_t e : chosen) weights.push_back(p[e]);
  if (config.gating == ExpertGating::kChosenSoftmax) Softmax(weights);
  float sum = 0;
  for (const float w : weights) sum += w;
  sum = std::max(sum, 0x1p-14f);
  std::vector<float> all(p.size(), 0.0f);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (config.normalised) weights[i] /= sum;
    all[chosen[i]] = weights[i] * config.weights_scale;
  }
  return all;
}

Oracle::Row Oracle::Experts(const model::ExpertsConfig& config, const std::string& prefix,
                            const Row& x) const {
  const Row h = Norm(x, fmt::format("{}{}.weight", prefix, config.norm));
  Row router = h;
  if (config.router_norm) {
    Row weights = Vector(prefix + "ffn_gate_inp.scale");
    for (float& w : weights) w *= static_cast<float>(std::sqrt(1.0 / config_.dim));
    router = Norm(x, weights);
  }
  Row logits = Multiply(prefix + "ffn_gate_inp.weight", router);
  if (config.biases) Add(logits, Vector(prefix + "ffn_gate_inp.bias"));
  std::vector<float> weights = ExpertWeights(
      config, logits, config.selection_bias ? Vector(prefix + "exp_probs_b.bias") : Row{});
  const Row scales = config.scales ? Vector(prefix + "ffn_down_exps.scale") : Row{};
  for (std::size_t e = 0; e < scales.size(); ++e) weights[e] *= scales[e];
  Row y(h.size(), 0.0f);
  const auto add = [&](float weight, const Row& of) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += weight * of[i];
  };
  for (std::size_t e = 0; e < weights.size(); ++e)
    if (weights[e] != 0) add(weights[e], ExpertOf(config, prefix, "_exps", h, static_cast<int>(e)));
  if (config.shared_width == 0) return y;
  float gate = 1;
  if (config.shared_gate)
    gate = 1.0f / (1.0f + Exp(-Multiply(prefix + "ffn_gate_inp_shexp.weight", h)[0]));
  add(gate, ExpertOf(config, prefix, "_shexp", h, 0));
  return y;
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

Oracle::Row Oracle::GatedFfn(const model::LayerConfig& layer, const model::GatedFfnConfig& config,
                             const Row& x) const {
  const auto weight = [&](std::string_view part) {
    return part.empty() ? std::string() : NameOf(layer, fmt::format("{}.weight", part));
  };
  const Row h = Norm(x, config.bare_norm ? NameOf(layer, config.norm) : weight(config.norm));
  Row up = Multiply(weight("ffn_up"), h), gate;
  if (!config.gated) {
    gate = up;
  } else if (config.gate_in_up) {
    gate = Part(up, 0, config.width);
    up = Part(up, config.width, config.width);
  } else {
    gate = Multiply(weight("ffn_gate"), h);
  }
  for (std::size_t j = 0; j < gate.size(); ++j) {
    const float g = gate[j];
    const float t = config.function == model::GateFunction::kSilu ? g : GeluArgument(g);
    gate[j] = (g / (1.0f + Exp(-t))) * up[j];
    if (config.function == model::GateFunction::kReluSquared)
      gate[j] = std::max(g, 0.0f) * std::max(g, 0.0f);
  }
  return Norm(Multiply(weight("ffn_down"), gate), weight(config.post_norm));
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

namespace {

float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}

float Log(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float n = static_cast<float>(exponent),
              f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  float y = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = std::fma(y, f, c);
  const float z = f * f;
  y = (y * f) * z;
  y = std::fma(n, -2.12194440e-4f, y);
  y = std::fma(-0.5f, z, y);
  return std::fma(n, 0.693359375f, f + y);
}

float Softplus(float x) {
  const float e = Exp(-std::fabs(x)), u = 1.0f + e;
  return std::max(x, 0.0f) + (u == 1.0f ? e : Log(u) * (e / (u - 1.0f)));
}

}  // namespace

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

// What the feed-forward part, or both of them, add to the residual stream.
Oracle::Row Oracle::FeedForward(const model::LayerConfig& layer, const Row& x) const {
  const model::ExpertsConfig* experts = layer.experts();
  if (std::holds_alternative<model::NoPart>(layer.feed_forward)) return Row(x.size(), 0.0f);
  if (experts == nullptr) return GatedFfn(layer, layer.ffn(), x);
  const auto norm = [&](const Row& y, std::string_view name) {
    return name.empty() ? y : Norm(y, NameOf(layer, fmt::format("{}.weight", name)));
  };
  const Row y = norm(Experts(*experts, NameOf(layer, ""), x), experts->post_norm);
  if (!layer.dense_part) return y;
  Row sum = GatedFfn(layer, *layer.dense_part, x);
  Add(sum, y);
  return norm(sum, layer.sum_norm);
}

// The row of a token in a table.
Oracle::Row Oracle::EmbeddingOf(const std::string& table, Token token) const {
  const formats::TensorView& t = *checkpoint_.Find(table);
  const std::size_t row_bytes = t.data.size() / static_cast<std::size_t>(t.shape[1]);
  Row row(static_cast<std::size_t>(t.shape[0]));
  tensor::Dequantize(tensor::FindDType(t.ggml_type)->type,
                     t.data.data() + static_cast<std::size_t>(token) * row_bytes, t.shape[0],
                     row.data());
  return row;
}

// What all layers get of a token; x: its embedding.
Oracle::Row Oracle::LayerInputs(Token token, const Row& x) const {
  const auto root = [](double value) { return static_cast<float>(std::sqrt(value)); };
  const int width = config_.layer_input;
  const Row projected = Multiply("per_layer_model_proj.weight", x),
            embedding = EmbeddingOf("per_layer_token_embd.weight", token);
  Row all;
  for (int at = 0; at < width * config_.n_layers(); at += width) {
    Row part = Part(projected, at, width);
    for (float& f : part) f *= root(1.0 / config_.dim);
    part = Norm(part, "per_layer_proj_norm.weight");
    for (std::size_t i = 0; i < part.size(); ++i)
      all.push_back((part[i] + embedding[static_cast<std::size_t>(at) + i] * root(width)) *
                    root(0.5));
  }
  return all;
}

// What layer `index` adds with its part of them.
Oracle::Row Oracle::LayerInput(const model::LayerConfig& layer, const Row& x, const Row& inputs,
                               int index) const {
  const int width = config_.layer_input;
  const Row input = Part(inputs, index * width, width);
  Row gate = Multiply(NameOf(layer, "inp_gate.weight"), x);
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = (gate[i] / (1.0f + Exp(-GeluArgument(gate[i])))) * input[i];
  return Norm(Multiply(NameOf(layer, "proj.weight"), gate), NameOf(layer, "post_norm.weight"));
}

void Oracle::RunLayer(const model::LayerConfig& layer, Text& text) const {
  const auto add = [&](Row& x, Row y) {
    if (layer.residual_scale != 1)
      for (float& f : y) f *= layer.residual_scale;
    Add(x, y);
  };
  const auto* attention = std::get_if<model::AttentionConfig>(&layer.mixer);
  const int source = attention == nullptr ? -1 : attention->cache_layer;
  const int index = static_cast<int>(text.caches.size());
  Text::Cache &cache = text.caches.emplace_back(), &beside = text.besides.emplace_back();
  for (std::size_t i = 0; i < text.stream.size(); ++i) {
    Row& x = text.stream[i];
    if (source >= 0) {
      const Text::Cache& read = text.caches[static_cast<std::size_t>(source)];
      cache.keys.push_back(read.keys[i]), cache.values.push_back(read.values[i]);
    }
    const auto mixed = [&](const auto& mixer) {
      const Row h =
          mixer.norm.empty() ? x : Norm(x, NameOf(layer, fmt::format("{}.weight", mixer.norm)));
      return Mix(layer, mixer, h, static_cast<int>(i), cache);
    };
    const Row before = x;
    add(x, std::visit(mixed, layer.mixer));
    if (layer.beside)
      add(x, Mix(layer, *layer.beside, Norm(before, NameOf(layer, "attn_norm.weight")),
                 static_cast<int>(i), beside));
    add(x, FeedForward(layer, x));
    if (config_.layer_input != 0) add(x, LayerInput(layer, x, text.inputs[i], index));
    if (layer.output_scale)
      for (float& f : x) f *= Vector(NameOf(layer, "layer_output_scale.weight"))[0];
  }
}

std::vector<float> Oracle::Logits(const std::vector<Token>& tokens) const {
  Text text;
  for (const Token token : tokens) {
    Row& x = text.stream.emplace_back(EmbeddingOf("token_embd.weight", token));
    if (config_.embedding_scale != 1)
      for (float& f : x) f *= config_.embedding_scale;
    if (config_.layer_input != 0) text.inputs.push_back(LayerInputs(token, x));
  }
  for (const model::LayerConfig& layer : config_.layers) RunLayer(layer, text);
  const bool tied = checkpoint_.Find("output.weight") == nullptr;
  Row logits = Multiply(tied ? "token_embd.weight" : "output.weight",
                        Norm(text.stream.back(), fmt::format("{}.weight", config_.output_norm)));
  if (config_.logit_scale != 1)
    for (float& f : logits) f *= config_.logit_scale;
  if (config_.logit_soft_cap != 0)
    for (float& f : logits) f = Capped(f, config_.logit_soft_cap);
  return logits;
}

std::vector<Token> Oracle::Decode(std::vector<Token> tokens, int n) const {
  std::vector<Token> out;
  for (int i = 0; i < n; ++i) {
    const auto logits = Logits(tokens);
    const auto best =
        static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    out.push_back(best);
    tokens.push_back(best);
  }
  return out;
}

}  // namespace foretoken::oracle
