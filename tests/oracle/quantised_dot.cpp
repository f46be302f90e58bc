// SPDX-License-Identifier: Apache-2.0
#include "oracle/quantised_dot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

namespace foretoken::oracle {
namespace {

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
template <typename Block, int kOffset>
Values Simple(const std::byte* row, std::size_t b) {
  const auto block = Read<Block>(row, b);
  Values v;
  v.scale = tensor::F16ToF32(block.d);
  if constexpr (requires { block.m; }) v.minimum = tensor::F16ToF32(block.m);
  std::uint32_t high = 0;
  if constexpr (requires { block.qh; }) std::memcpy(&high, block.qh, 4);
  for (std::size_t i = 0; i < 32; ++i) {
    const int low = i < 16 ? block.qs[i] & 15 : block.qs[i - 16] >> 4;
    v.q[i] = low + static_cast<int>(high >> i & 1) * 16 - kOffset;
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
  static const std::map<DType, Values (*)(const std::byte*, std::size_t)> kReaders = {
      {DType::kQ4_0, Simple<tensor::BlockQ4_0, 8>},
      {DType::kQ4_1, Simple<tensor::BlockQ4_1, 0>},
      {DType::kQ5_0, Simple<tensor::BlockQ5_0, 16>},
      {DType::kQ5_1, Simple<tensor::BlockQ5_1, 0>},
      {DType::kQ4_K, KQuant<tensor::BlockQ4_K>},
      {DType::kQ5_K, KQuant<tensor::BlockQ5_K>},
      {DType::kQ6_K, OfQ6_K},
      {DType::kMXFP4, OfMXFP4},
      {DType::kIQ4_NL, OfIQ4_NL},
      {DType::kIQ4_XS, OfIQ4_XS},
      {DType::kQ3_K, OfQ3_K},
      {DType::kQ2_K, OfQ2_K},
      {DType::kQ8_0, OfQ8_0}};
  return kReaders.at(type)(row, b);
}

}  // namespace

Quantised::Quantised(const std::vector<float>& x) {
  for (std::size_t b = 0; b < x.size(); b += 32) {
    float amax = 0;
    for (std::size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[b + i]));
    const float id = amax > 0 ? 127.0f / amax : 0;
    d.push_back(amax / 127.0f);
    for (std::size_t i = 0; i < 32; ++i)
      q.push_back(static_cast<int>(std::nearbyint(x[b + i] * id)));
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

}  // namespace foretoken::oracle
