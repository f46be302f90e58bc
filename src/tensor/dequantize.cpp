// SPDX-License-Identifier: Apache-2.0
// Converts numbers as files hold them to f32, with the same roundings as ggml's own conversion, so
// that both read the same numbers.
//
// A block of a K-quant is a super-block of 256 values.
// Q4_K and Q5_K have 8 runs of 32 values, each with a 6-bit scale and a 6-bit minimum, which are
// packed into 12 bytes s:
//            scale                                        minimum
//   i < 4    s[i] & 63                                    s[i + 4] & 63
//   i >= 4   (s[i + 4] & 15) | (s[i - 4] >> 6) << 4       (s[i + 4] >> 4) | (s[i] >> 6) << 4
// 32 bytes of qs serve two runs: their low halves the first, their high halves the second. Bit i of
// qh[l] is the fifth bit of value l of run i.
// Q3_K and Q2_K have two halves of 128 values, which are 4 runs of 32: the low two bits of value l
// of run i are bits 2 i and up of byte l of the half's 32. Each 16 values have a scale. In Q3_K the
// third bit of value l of run i (of 8) is bit i of hmask[l], and the 12 bytes s of scales hold,
// less 32,
//   (i < 8 ? s[i] & 15 : s[i - 8] >> 4) | (s[8 + i % 4] >> 2 (i / 4) & 3) << 4
// Q2_K has the scale in the low four bits of a byte, and a minimum in the high ones.
// Q6_K has two halves of 128 values, which are 4 runs of 32. Each 16 values have an int8 scale.
#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/wide_block.h"

namespace foretoken::tensor {
namespace {

void Expand(const BlockQ4_0& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>((b.qs[j] & 15) - 8) * d;
    out[j + kHalf] = static_cast<float>((b.qs[j] >> 4) - 8) * d;
  }
}

void Expand(const BlockQ4_1& b, float* out) {
  const float d = F16ToF32(b.d), m = F16ToF32(b.m);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>(b.qs[j] & 15) * d + m;
    out[j + kHalf] = static_cast<float>(b.qs[j] >> 4) * d + m;
  }
}

// Bit j of qh (little endian) is the fifth bit of value j.
int FifthBit(const std::uint8_t* qh, int j) {
  return ((qh[j / 8] >> (j % 8)) & 1) << 4;
}

void Expand(const BlockQ5_0& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>(((b.qs[j] & 15) | FifthBit(b.qh, j)) - 16) * d;
    out[j + kHalf] = static_cast<float>(((b.qs[j] >> 4) | FifthBit(b.qh, j + kHalf)) - 16) * d;
  }
}

void Expand(const BlockQ5_1& b, float* out) {
  const float d = F16ToF32(b.d), m = F16ToF32(b.m);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>((b.qs[j] & 15) | FifthBit(b.qh, j)) * d + m;
    out[j + kHalf] = static_cast<float>((b.qs[j] >> 4) | FifthBit(b.qh, j + kHalf)) * d + m;
  }
}

void Expand(const BlockQ8_0& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int j = 0; j < kBlock; ++j) out[j] = static_cast<float>(b.qs[j]) * d;
}

void Expand(const BlockIQ4_NL& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>(kIq4Values[b.qs[j] & 15]) * d;
    out[j + kHalf] = static_cast<float>(kIq4Values[b.qs[j] >> 4]) * d;
  }
}

void Expand(const BlockIQ4_XS& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int run = 0; run < 8; ++run, out += kBlock) {
    const int low = b.scales_l[run / 2] >> (run % 2 * 4) & 15, high = b.scales_h >> (2 * run) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* qs = b.qs + run * kHalf;
    for (int j = 0; j < kHalf; ++j) {
      out[j] = static_cast<float>(kIq4Values[qs[j] & 15]) * scale;
      out[j + kHalf] = static_cast<float>(kIq4Values[qs[j] >> 4]) * scale;
    }
  }
}

void Expand(const BlockMXFP4& b, float* out) {
  const float d = Mxfp4Scale(b.e);
  for (int j = 0; j < kHalf; ++j) {
    out[j] = static_cast<float>(kMxfp4Values[b.qs[j] & 15]) * d;
    out[j + kHalf] = static_cast<float>(kMxfp4Values[b.qs[j] >> 4]) * d;
  }
}

struct RunScale {
  float scale, minimum;
};

RunScale ScaleOfRun(const std::uint8_t* s, int run, float d, float dmin) {
  int scale, minimum;
  if (run < 4) {
    scale = s[run] & 63;
    minimum = s[run + 4] & 63;
  } else {
    scale = (s[run + 4] & 15) | (s[run - 4] >> 6) << 4;
    minimum = (s[run + 4] >> 4) | (s[run] >> 6) << 4;
  }
  return {d * static_cast<float>(scale), dmin * static_cast<float>(minimum)};
}

void Expand(const BlockQ4_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int run = 0; run < 8; ++run) {
    const RunScale r = ScaleOfRun(b.scales, run, d, dmin);
    const std::uint8_t* qs = b.qs + run / 2 * kBlock;
    const int shift = run % 2 * 4;
    for (int l = 0; l < kBlock; ++l)
      out[run * kBlock + l] = r.scale * static_cast<float>((qs[l] >> shift) & 15) - r.minimum;
  }
}

void Expand(const BlockQ5_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int run = 0; run < 8; ++run) {
    const RunScale r = ScaleOfRun(b.scales, run, d, dmin);
    const std::uint8_t* qs = b.qs + run / 2 * kBlock;
    const int shift = run % 2 * 4;
    for (int l = 0; l < kBlock; ++l) {
      const int q = ((qs[l] >> shift) & 15) | ((b.qh[l] >> run) & 1) << 4;
      out[run * kBlock + l] = r.scale * static_cast<float>(q) - r.minimum;
    }
  }
}

void Expand(const BlockQ3_K& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int run = i / kBlock, l = i % kBlock, part = i / kHalf;
    const int q = (b.qs[run / 4 * kBlock + l] >> (run % 4 * 2) & 3) | (b.hmask[l] >> run & 1) << 2;
    const int low = part < 8 ? b.scales[part] & 15 : b.scales[part - 8] >> 4;
    const int high = b.scales[8 + part % 4] >> (part / 4 * 2) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    out[i] = scale * static_cast<float>(q - 4);
  }
}

void Expand(const BlockQ2_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int run = i / kBlock, l = i % kBlock, scale = b.scales[i / kHalf];
    const int q = b.qs[run / 4 * kBlock + l] >> (run % 4 * 2) & 3;
    out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
             dmin * static_cast<float>(scale >> 4);
  }
}

void Expand(const BlockQ6_K& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128, run = i % 128 / kBlock, l = i % kBlock;
    const int low = b.ql[half * 64 + run % 2 * kBlock + l] >> (run / 2 * 4) & 15;
    const int high = b.qh[half * kBlock + l] >> (run * 2) & 3;
    const float scale = d * static_cast<float>(b.scales[i / 16]);
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// A block of a type that is kept in a wider form. The products are exact.
void Expand(const BlockWide& b, float* out) {
  for (int i = 0; i < kSuperBlock; ++i)
    out[i] = b.d * static_cast<float>(b.scale[i / kHalf]) * static_cast<float>(b.q[i]);
}

template <class Block>
void Expand(const Block& b, float* out) {
  Expand(Widen(b), out);
}

// Rows of a mapped file have no alignment of their own, hence the copies.
template <class Block>
void ExpandRow(const void* row, std::int64_t n, int block_values, float* out) {
  FORETOKEN_CHECK(n >= 0 && n % block_values == 0);
  const auto* bytes = static_cast<const unsigned char*>(row);
  for (std::int64_t i = 0; i < n; i += block_values, bytes += sizeof(Block)) {
    Block block;
    std::memcpy(&block, bytes, sizeof block);
    Expand(block, out + i);
  }
}

template <float (*Convert)(std::uint16_t)>
void ConvertRow(const void* row, std::int64_t n, float* out) {
  const auto* bytes = static_cast<const unsigned char*>(row);
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, sizeof bits);
    out[i] = Convert(bits);
  }
}

}  // namespace

void Dequantize(DType type, const void* row, std::int64_t n, float* out) {
  if (n == 0) return;
  switch (type) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::kF16:
      return ConvertRow<F16ToF32>(row, n, out);
    case DType::kBF16:
      return ConvertRow<BF16ToF32>(row, n, out);
    case DType::kQ4_0:
      return ExpandRow<BlockQ4_0>(row, n, kBlock, out);
    case DType::kQ4_1:
      return ExpandRow<BlockQ4_1>(row, n, kBlock, out);
    case DType::kQ5_0:
      return ExpandRow<BlockQ5_0>(row, n, kBlock, out);
    case DType::kQ5_1:
      return ExpandRow<BlockQ5_1>(row, n, kBlock, out);
    case DType::kQ8_0:
      return ExpandRow<BlockQ8_0>(row, n, kBlock, out);
    case DType::kQ4_K:
      return ExpandRow<BlockQ4_K>(row, n, kSuperBlock, out);
    case DType::kQ5_K:
      return ExpandRow<BlockQ5_K>(row, n, kSuperBlock, out);
    case DType::kQ6_K:
      return ExpandRow<BlockQ6_K>(row, n, kSuperBlock, out);
    case DType::kMXFP4:
      return ExpandRow<BlockMXFP4>(row, n, kBlock, out);
    case DType::kIQ4_NL:
      return ExpandRow<BlockIQ4_NL>(row, n, kBlock, out);
    case DType::kIQ4_XS:
      return ExpandRow<BlockIQ4_XS>(row, n, kSuperBlock, out);
    case DType::kQ3_K:
      return ExpandRow<BlockQ3_K>(row, n, kSuperBlock, out);
    case DType::kQ2_K:
      return ExpandRow<BlockQ2_K>(row, n, kSuperBlock, out);
    case DType::kIQ3_S:
      return ExpandRow<BlockIQ3_S>(row, n, kSuperBlock, out);
    case DType::kIQ3_XXS:
      return ExpandRow<BlockIQ3_XXS>(row, n, kSuperBlock, out);
    case DType::kIQ2_S:
      return ExpandRow<BlockIQ2_S>(row, n, kSuperBlock, out);
    case DType::kIQ2_XS:
      return ExpandRow<BlockIQ2_XS>(row, n, kSuperBlock, out);
    case DType::kIQ2_XXS:
      return ExpandRow<BlockIQ2_XXS>(row, n, kSuperBlock, out);
    case DType::kIQ1_M:
      return ExpandRow<BlockIQ1_M>(row, n, kSuperBlock, out);
    case DType::kIQ1_S:
      return ExpandRow<BlockIQ1_S>(row, n, kSuperBlock, out);
    case DType::kTQ2_0:
      return ExpandRow<BlockTQ2_0>(row, n, kSuperBlock, out);
    case DType::kTQ1_0:
      return ExpandRow<BlockTQ1_0>(row, n, kSuperBlock, out);
  }
  FORETOKEN_CHECK(!"a type without a row in the table of types");
}

}  // namespace foretoken::tensor
