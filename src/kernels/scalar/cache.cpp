// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/functions.h"
#include "kernels/scalar/half.h"

namespace foretoken::kernels::scalar {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale

struct F32 {
  using Stored = float;
  static float From(float x) { return x; }
};
struct F16 {
  using Stored = std::uint16_t;
  static std::uint16_t From(float x) { return FloatToHalf(x); }
};
struct BF16 {
  using Stored = std::uint16_t;
  static std::uint16_t From(float x) { return FloatToBfloat(x); }
};

template <class Type>
void StoreKAs(const float* x, int head_dim, int slot, void* block) {
  auto* column = static_cast<typename Type::Stored*>(block) + slot;
  for (int d = 0; d < head_dim; ++d) column[d * kSlots] = Type::From(x[d]);
}

template <class Type>
void StoreVAs(const float* x, int head_dim, int slot, void* block) {
  auto* row = static_cast<typename Type::Stored*>(block) + slot * head_dim;
  for (int d = 0; d < head_dim; ++d) row[d] = Type::From(x[d]);
}

// Quantises 32 values to q and returns their scale.
std::uint16_t QuantizeGroup(const float* x, std::int8_t* q) {
  std::uint32_t largest = 0;  // compared as integers, so that NaN is the largest
  for (int i = 0; i < kGroup; ++i) {
    const std::uint32_t magnitude = Bits(x[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  const float amax = FromBits(largest);
  const std::uint16_t scale = FloatToHalf(amax / 127.0f);
  const float d = HalfToFloat(scale);
  for (int i = 0; i < kGroup; ++i) {
    float ratio = d == 0.0f ? 0.0f : x[i] / d;
    ratio = ratio > 127.0f ? 127.0f : ratio;
    ratio = ratio < -127.0f ? -127.0f : ratio;
    // Adding 1.5 * 2^23 rounds to an even integer, which the low bits then hold.
    q[i] = static_cast<std::int8_t>(Bits(ratio + 12582912.0f) & 0xff);
  }
  return scale;
}

// Rounds to numbers from -8 to 7, as 0 to 15.
std::uint16_t QuantizeFours(const float* x, std::uint8_t* q) {
  std::uint32_t above = 0, below = 0;  // compared as integers, so that NaN is the largest
  for (int i = 0; i < kGroup; ++i) {
    std::uint32_t& most = Bits(x[i]) >> 31 == 0 ? above : below;
    const std::uint32_t magnitude = Bits(x[i]) & 0x7fffffff;
    most = magnitude > most ? magnitude : most;
  }
  above = Bits(FromBits(above) / 7.25f);
  below = Bits(FromBits(below) / 8.25f);
  const std::uint16_t scale = FloatToHalf(FromBits(above > below ? above : below));
  const float d = HalfToFloat(scale);
  for (int i = 0; i < kGroup; ++i) {
    float ratio = d == 0.0f ? 0.0f : x[i] / d;
    ratio = ratio > 7.0f ? 7.0f : ratio;
    ratio = ratio < -8.0f ? -8.0f : ratio;
    q[i] = static_cast<std::uint8_t>((Bits(ratio + 12582912.0f) + 8) & 15);
  }
  return scale;
}

// The scales of a block whose numbers take so many bytes.
std::uint16_t* ScalesOf(void* block, int bytes) {
  return reinterpret_cast<std::uint16_t*>(static_cast<std::int8_t*>(block) + bytes);
}

void SetHalf(std::uint8_t& byte, bool upper, std::uint8_t q) {
  byte = static_cast<std::uint8_t>(upper ? (byte & 0x0f) | q << 4 : (byte & 0xf0) | q);
}

// Calls put(d, q) for each number of a position, and stores the scales.
template <typename Put>
void StoreFours(const float* x, int head_dim, int slot, void* block, const Put& put) {
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim / 2) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::uint8_t group[kGroup];
    scales[d / kGroup * kSlots] = QuantizeFours(x + d, group);
    for (int i = 0; i < kGroup; ++i) put(d + i, group[i]);
  }
}

}  // namespace

void StoreKF32(const float* x, int head_dim, int slot, void* block) {
  StoreKAs<F32>(x, head_dim, slot, block);
}
void StoreKF16(const float* x, int head_dim, int slot, void* block) {
  StoreKAs<F16>(x, head_dim, slot, block);
}
void StoreKBF16(const float* x, int head_dim, int slot, void* block) {
  StoreKAs<BF16>(x, head_dim, slot, block);
}
void StoreVF32(const float* x, int head_dim, int slot, void* block) {
  StoreVAs<F32>(x, head_dim, slot, block);
}
void StoreVF16(const float* x, int head_dim, int slot, void* block) {
  StoreVAs<F16>(x, head_dim, slot, block);
}
void StoreVBF16(const float* x, int head_dim, int slot, void* block) {
  StoreVAs<BF16>(x, head_dim, slot, block);
}

void StoreKQ8_0(const float* x, int head_dim, int slot, void* block) {
  auto* q = static_cast<std::int8_t*>(block);
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t group[kGroup];
    scales[d / kGroup * kSlots] = QuantizeGroup(x + d, group);
    for (int i = 0; i < kGroup; ++i) q[((d + i) / 4 * kSlots + slot) * 4 + i % 4] = group[i];
  }
}

void StoreVQ8_0(const float* x, int head_dim, int slot, void* block) {
  auto* q = static_cast<std::int8_t*>(block);
  std::uint16_t* scales = ScalesOf(block, kSlots * head_dim) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t group[kGroup];
    scales[d / kGroup * kSlots] = QuantizeGroup(x + d, group);
    for (int i = 0; i < kGroup; ++i) q[(slot / 4 * head_dim + d + i) * 4 + slot % 4] = group[i];
  }
}

void StoreKQ4_0(const float* x, int head_dim, int slot, void* block) {
  auto* bytes = static_cast<std::uint8_t*>(block);
  StoreFours(x, head_dim, slot, block, [&](int d, std::uint8_t q) {
    SetHalf(bytes[(d / 8 * kSlots + slot) * 4 + d % 4], d % 8 >= 4, q);
  });
}

void StoreVQ4_0(const float* x, int head_dim, int slot, void* block) {
  auto* bytes = static_cast<std::uint8_t*>(block);
  StoreFours(x, head_dim, slot, block, [&](int d, std::uint8_t q) {
    SetHalf(bytes[(slot / 8 * head_dim + d) * 4 + slot % 4], slot % 8 >= 4, q);
  });
}

}  // namespace foretoken::kernels::scalar
