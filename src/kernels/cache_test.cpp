// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/aligned_buffer.h"
#include "kernels/kernels_testing.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

using tensor::kKvBlock;
using tensor::KvType;

constexpr KvType kCacheTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0,
                                  KvType::kQ4_0};
constexpr int kHeadDims[] = {8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 256};

bool Fits(KvType type, int head_dim) {
  return !tensor::HasScales(type) || head_dim % 32 == 0;
}

template <class T>
T Element(const AlignedBytes& block, int i, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, block.data() + offset + sizeof(T) * static_cast<std::size_t>(i), sizeof(T));
  return value;
}

// Dimension d at a slot, read with the layout of tensor/block_layout.h.
float ReadBack(const AlignedBytes& block, KvType type, bool is_key, int head_dim, int slot, int d) {
  const int i = is_key ? d * kKvBlock + slot : slot * head_dim + d;
  const int byte =
      is_key ? (d / 4 * kKvBlock + slot) * 4 + d % 4 : (slot / 4 * head_dim + d) * 4 + slot % 4;
  switch (type) {
    case KvType::kF32:
      return Element<float>(block, i);
    case KvType::kF16:
      return tensor::F16ToF32(Element<std::uint16_t>(block, i));
    case KvType::kBF16:
      return tensor::BF16ToF32(Element<std::uint16_t>(block, i));
    case KvType::kQ8_0:
      break;
    case KvType::kQ4_0: {
      const int at =
          is_key ? (d / 8 * kKvBlock + slot) * 4 + d % 4 : (slot / 8 * head_dim + d) * 4 + slot % 4;
      const bool upper = (is_key ? d : slot) % 8 >= 4;
      const int both = Element<std::uint8_t>(block, at);
      return static_cast<float>((upper ? both >> 4 : both & 15) - 8) *
             tensor::F16ToF32(
                 Element<std::uint16_t>(block, d / 32 * kKvBlock + slot,
                                        static_cast<std::size_t>(kKvBlock * head_dim / 2)));
    }
  }
  const auto offset = static_cast<std::size_t>(kKvBlock * head_dim);
  return static_cast<float>(Element<std::int8_t>(block, byte)) *
         tensor::F16ToF32(Element<std::uint16_t>(block, d / 32 * kKvBlock + slot, offset));
}

void Store(const Kernels& kernels, KvType type, bool is_key, const float* x, int head_dim, int slot,
           AlignedBytes& block) {
  const auto t = static_cast<std::size_t>(type);
  (is_key ? kernels.store_k[t] : kernels.store_v[t])(x, head_dim, slot, block.data());
}

TEST(StoreKv, KeepsEachPositionWithinTheErrorOfItsType) {
  for (const KvType type : kCacheTypes) {
    for (const int head_dim : {32, 64, 96}) {
      for (const bool is_key : {true, false}) {
        AlignedBytes block(tensor::KvBlockBytes(type, head_dim));
        const auto x = Normal(head_dim * kKvBlock, 5);
        for (int slot = 0; slot < kKvBlock; ++slot)
          Store(Scalar(), type, is_key, x.data() + slot * head_dim, head_dim, slot, block);
        // The bounds are half of 2^-10 for f16, half of 2^-7 for bf16, and for q8_0 half of amax /
        // 127 and the rounding of the scale. The largest of q4_0 is a quarter of a step beyond its last
        // number.
        const float relative[] = {0.0f, 0x1p-11f, 0x1p-8f, 0.0f, 0.0f};
        const float absolute = type == KvType::kQ8_0   ? 4.5f / 127 * 0.56f
                               : type == KvType::kQ4_0 ? 4.5f / 7.25f * 0.51f
                                                       : 1e-7f;
        for (int slot = 0; slot < kKvBlock; ++slot)
          for (int d = 0; d < head_dim; ++d) {
            const float expected = x[static_cast<std::size_t>(slot * head_dim + d)];
            const float tolerance =
                relative[static_cast<int>(type)] * std::abs(expected) + absolute;
            ASSERT_NEAR(ReadBack(block, type, is_key, head_dim, slot, d), expected, tolerance);
          }
      }
    }
  }
}

TEST(BoundKeys, AreTheLeastAndTheLargestOfABlock) {
  const float specials[] = {0.0f, -0.0f, 1e-8f, -6e4f, 5e4f};
  for (const KvType type : kCacheTypes)
    for (const int head_dim : {32, 64, 96}) {
      AlignedBytes block(tensor::KvBlockBytes(type, head_dim));
      const auto x = Spiced(static_cast<std::size_t>(head_dim * kKvBlock), 5, specials);
      for (int slot = 0; slot < kKvBlock; ++slot)
        Store(Scalar(), type, true, x.data() + slot * head_dim, head_dim, slot, block);
      for (const Isa isa : AvailableIsas()) {
        std::vector<float> least(static_cast<std::size_t>(head_dim) + 1, kSentinel), most = least;
        KernelsFor(isa).bound_keys[static_cast<std::size_t>(type)](block.data(), head_dim,
                                                                   least.data(), most.data());
        EXPECT_EQ(least.back(), kSentinel);
        EXPECT_EQ(most.back(), kSentinel);
        for (int d = 0; d < head_dim; ++d) {
          float low = kInf, high = -kInf;
          for (int slot = 0; slot < kKvBlock; ++slot) {
            const float key = ReadBack(block, type, true, head_dim, slot, d);
            low = std::min(low, key), high = std::max(high, key);
          }
          EXPECT_TRUE(SameBits(least[static_cast<std::size_t>(d)], low + 0.0f)) << Name(isa);
          EXPECT_TRUE(SameBits(most[static_cast<std::size_t>(d)], high + 0.0f)) << Name(isa);
        }
      }
    }
}

TEST(StoreKv, HalvesAndBfloatsRoundLikeTheTensorModule) {
  const float specials[] = {0.0f,  -0.0f, 1e-8f, -3e-8f, 65519.0f,   65520.0f,
                            -1e9f, kInf,  -kInf, 1e-40f, 1.0004883f, kNan};
  const auto x = Spiced(64, 9, specials);
  for (const KvType type : {KvType::kF16, KvType::kBF16})
    for (const Isa isa : AvailableIsas()) {
      AlignedBytes block(tensor::KvBlockBytes(type, 64));
      Store(KernelsFor(isa), type, false, x.data(), 64, 3, block);
      for (int d = 0; d < 64; ++d) {
        const float v = x[static_cast<std::size_t>(d)];
        const auto expected = type == KvType::kF16 ? tensor::F32ToF16(v) : tensor::F32ToBF16(v);
        EXPECT_EQ(Element<std::uint16_t>(block, 3 * 64 + d), expected) << Name(isa) << " " << v;
      }
    }
}

TEST(StoreKv, Q8_0RoundsToEvenAndNeverLeaves127) {
  // amax = 127 * 2^-3 makes the scale exact, so ties are visible.
  std::vector<float> x(32, 0.0f);
  const float values[] = {127, -127, 0.5f, 1.5f, -0.5f, -2.5f, 3.49f};
  const int expected[] = {127, -127, 0, 2, 0, -2, 3};
  for (std::size_t i = 0; i < 7; ++i) x[i] = values[i] * 0.125f;
  for (const Isa isa : AvailableIsas()) {
    AlignedBytes block(tensor::KvBlockBytes(KvType::kQ8_0, 32));
    Store(KernelsFor(isa), KvType::kQ8_0, false, x.data(), 32, 0, block);
    const auto stored = [&block](int slot, int d) {
      return Element<std::int8_t>(block, d * 4 + slot);
    };
    for (int i = 0; i < 7; ++i) EXPECT_EQ(stored(0, i), expected[i]) << Name(isa);
    // A scale that f16 rounds down to its smallest number would give quotients above 127.
    const std::vector<float> tiny(32, 127 * 0x1.7p-24f);
    Store(KernelsFor(isa), KvType::kQ8_0, false, tiny.data(), 32, 1, block);
    EXPECT_EQ(stored(1, 0), 127) << Name(isa);
    const std::vector<float> negative(32, -127 * 0x1.7p-24f);
    Store(KernelsFor(isa), KvType::kQ8_0, false, negative.data(), 32, 3, block);
    EXPECT_EQ(stored(3, 0), -127) << Name(isa);
    // A scale that f16 rounds to zero gives zeros.
    const std::vector<float> tinier(32, -1e-9f);
    Store(KernelsFor(isa), KvType::kQ8_0, false, tinier.data(), 32, 2, block);
    EXPECT_EQ(stored(2, 0), 0) << Name(isa);
    EXPECT_EQ(ReadBack(block, KvType::kQ8_0, false, 32, 2, 0), 0.0f) << Name(isa);
  }
}

TEST(StoreKv, Q4_0RoundsToEvenAndUsesAllSixteenNumbers) {
  struct Case {
    std::vector<float> x;
    std::vector<int> q;
  };
  const Case cases[] = {
      {{7.25f, -8.25f, 0.5f, 1.5f, -0.5f, -2.5f, 3.49f, -7.51f}, {7, -8, 0, 2, 0, -2, 3, -8}},
      {{7.25f, -1.0f, 6.51f}, {7, -1, 7}},  // the scale of the largest
      {{1.0f, -8.25f, 6.49f}, {1, -8, 6}},  // and of the least
      {{0x1.7p-21f, 0x1.7p-21f}, {6, 6}},   // a scale that f16 rounds
      {{-1e-9f, 1e-9f}, {0, 0}},            // and one that it rounds to zero
  };
  for (const Isa isa : AvailableIsas())
    for (const auto& [values, expected] : cases) {
      std::vector<float> x(32, 0.0f);
      std::copy(values.begin(), values.end(), x.begin());
      AlignedBytes block(tensor::KvBlockBytes(KvType::kQ4_0, 32));
      Store(KernelsFor(isa), KvType::kQ4_0, false, x.data(), 32, 0, block);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(Element<std::uint8_t>(block, static_cast<int>(i) * 4) % 16 - 8, expected[i])
            << Name(isa) << " " << values[i];
    }
}

TEST(StoreKv, ShowsWhatIsNotFiniteInTheScaleOfQ4_0) {
  for (const Isa isa : AvailableIsas())
    for (const float broken : {kNan, -kNan, kInf, -kInf}) {
      std::vector<float> x(32, 1.0f);
      x[5] = broken;
      AlignedBytes block(tensor::KvBlockBytes(KvType::kQ4_0, 32));
      Store(KernelsFor(isa), KvType::kQ4_0, true, x.data(), 32, 0, block);
      EXPECT_FALSE(std::isfinite(tensor::F16ToF32(Element<std::uint16_t>(block, 0, 32 * 32 / 2))))
          << Name(isa) << " " << broken;
    }
}

TEST(StoreKv, HasTheBytesOfTheScalarTableAndTouchesNoOtherSlot) {
  const float specials[] = {0.0f, -0.0f, 1e-8f, 6e-5f, 60000.0f, -1e-40f, 3.1f};
  for (const Kernels* kernels : VectorTables())
    for (const KvType type : kCacheTypes)
      for (const int head_dim : kHeadDims) {
        if (!Fits(type, head_dim)) continue;
        for (const bool is_key : {true, false}) {
          AlignedBytes expected(tensor::KvBlockBytes(type, head_dim)),
              actual(expected.size_bytes());
          std::memset(expected.data(), 0xa5, expected.size_bytes());
          std::memset(actual.data(), 0xa5, actual.size_bytes());
          for (const int slot : {0, 1, 4, 17, 20, 31}) {
            const auto x = Spiced(static_cast<std::size_t>(head_dim),
                                  static_cast<std::uint32_t>(slot), specials);
            Store(Scalar(), type, is_key, x.data(), head_dim, slot, expected);
            Store(*kernels, type, is_key, x.data(), head_dim, slot, actual);
          }
          EXPECT_EQ(std::memcmp(expected.data(), actual.data(), expected.size_bytes()), 0)
              << kernels->isa << " type " << static_cast<int>(type) << " " << head_dim << " "
              << is_key;
        }
      }
}

}  // namespace
}  // namespace foretoken::kernels
