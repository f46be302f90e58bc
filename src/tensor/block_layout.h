// SPDX-License-Identifier: Apache-2.0
// tensor/block_layout.h: the number types, and how numbers lie in memory: the blocks of GGUF files,
// and the tiles that kernels read. Only plain structs and enums stand here, because the kernels of
// every instruction set include this file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretoken::tensor {

// ---- Number types -------------------------------------------------------------------------------
// The number types that foretoken reads, by the numbers that ggml gave them and GGUF files carry.
enum class DType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
};

// ---- Blocks of GGUF files -----------------------------------------------------------------------
// The layouts are those of ggml. d, m and dmin are the bits of IEEE half-precision numbers.
inline constexpr int kBlock = 32;        // values in a simple block
inline constexpr int kSuperBlock = 256;  // values in a K-quant block
inline constexpr int kHalf = kBlock / 2;
inline constexpr int kRuns = kSuperBlock / kBlock;  // of simple blocks in a super-block

// Byte j of the 16 in qs holds value j in its low four bits and value j + 16 in its high ones; bit
// j of the 32 in qh is the fifth bit of value j.
struct BlockQ4_0 {  // x = d * (q - 8)
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct BlockQ4_1 {  // x = d * q + m
  std::uint16_t d, m;
  std::uint8_t qs[16];
};
struct BlockQ5_0 {  // x = d * (q - 16)
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
struct BlockQ5_1 {  // x = d * q + m
  std::uint16_t d, m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
struct BlockQ8_0 {  // x = d * q
  std::uint16_t d;
  std::int8_t qs[32];
};
// The four bits of a value are the index of a number in a table.
inline constexpr int kTableCodes = 16;
// Twice the numbers of the format E2M1: a sign, two bits of exponent, one of mantissa.
inline constexpr std::int8_t kMxfp4Values[kTableCodes] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                          0, -1, -2, -3, -4, -6, -8, -12};
struct BlockMXFP4 {  // x = 2^(e - 128) * kMxfp4Values[q]
  std::uint8_t e;
  std::uint8_t qs[16];
};
inline constexpr std::int8_t kIq4Values[kTableCodes] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};
struct BlockIQ4_NL {  // x = d * kIq4Values[q]
  std::uint16_t d;
  std::uint8_t qs[16];
};
// Eight runs of 32 values. Run r has the scale of six bits: bits 4 (r % 2) and up of
// scales_l[r / 2], and above them bits 2 r and 2 r + 1 of scales_h.
struct BlockIQ4_XS {  // x = d * (scale - 32) * kIq4Values[q]
  std::uint16_t d;
  std::uint16_t scales_h;
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};
// The super-blocks of K-quants; dequantize.cpp explains them.
struct BlockQ2_K {
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d, dmin;
};
struct BlockQ3_K {
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;
};
struct BlockQ4_K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
struct BlockQ5_K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
struct BlockQ6_K {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);

// ---- Tiles: the weights as kernels read them ----------------------------------------------------
// Weights are repacked into tiles when a model is loaded. A matrix [n_out, k] becomes
// ceil(n_out / 16) strips of 16 outputs; a strip runs along k without gaps. Outputs lie in the
// lanes of a vector, so no kernel ever adds across lanes, and the order of a sum is the order of k.
// Outputs beyond n_out are zero.
inline constexpr int kTileOutputs = 16;

// One for each number type that kernels compute with. Whoever changes a layout raises the version in
// model/weights/tile_header.cpp.
enum class TileType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kMXFP4,
  kIQ4_NL,
  kIQ4_XS,
  kQ3_K,
  kQ2_K,
  kWide
};
inline constexpr int kTileTypes = static_cast<int>(TileType::kWide) + 1;  // the last one

// F32, F16, BF16: a strip is [k][16]: 16 values for each k.
// Quantised types: a strip is a row of the structs below, each of 32 k, or of 256 k (8 runs of 32)
// for K-quants. Weights are unsigned; where those of the file are signed, an offset is added. d, m
// and dmin are halves, one for each of the 16 outputs o. Within a run:
//   q   four bits each: k = 8 i + j in the low half of q[i][o][j], k = 8 i + 4 + j in the high half
//   qh  the fifth bit of k = 4 f + j is bit f of qh[o][j]
struct TileQ8_0 {  // x = d * (q - 128); q[i][o][j] belongs to k = 4 i + j
  std::uint8_t q[8][16][4];
  std::uint16_t d[16];
};
struct TileQ4_0 {  // x = d * (q - 8)
  std::uint8_t q[4][16][4];
  std::uint16_t d[16];
};
struct TileQ4_1 {  // x = d * q + m
  std::uint8_t q[4][16][4];
  std::uint16_t d[16], m[16];
};
struct TileQ5_0 {  // x = d * (q - 16)
  std::uint8_t q[4][16][4];
  std::uint8_t qh[16][4];
  std::uint16_t d[16];
};
struct TileQ5_1 {  // x = d * q + m
  std::uint8_t q[4][16][4];
  std::uint8_t qh[16][4];
  std::uint16_t d[16], m[16];
};
struct TileMXFP4 {  // x = 2^(e - 128) * kMxfp4Values[q]
  std::uint8_t q[4][16][4];
  std::uint8_t e[16];
};
struct TileIQ4_NL {  // x = d * kIq4Values[q]
  std::uint8_t q[4][16][4];
  std::uint16_t d[16];
};
// In K-quants the scales and what the runs share come first, then the runs. So a kernel reads a
// strip from front to back, which suits the hardware's prefetcher. All parts are whole cache lines.
struct TileQ4_K {  // x = d * scale[run] * q - dmin * minimum[run]; scale and minimum of 6 bits
  std::uint16_t d[16], dmin[16];
  std::uint8_t scale[8][16], minimum[8][16];
  struct Run {
    std::uint8_t q[4][16][4];
  } runs[8];
};
struct TileQ5_K {  // x as for Q4_K
  std::uint16_t d[16], dmin[16];
  std::uint8_t scale[8][16], minimum[8][16];
  struct Run {
    std::uint8_t q[4][16][4];
    std::uint8_t qh[16][4];
  } runs[8];
};
// x = d * scale[run][h] * (q - 32), where h is 0 for the first 16 k of a run and 1 for the last 16.
// The high two bits of k = 16 h + 4 f + j are bits 2 f and 2 f + 1 of qh[h][o][j].
struct TileQ6_K {
  std::uint16_t d[16];
  std::int8_t scale[8][2][16];
  std::uint8_t unused[32];
  struct Run {
    std::uint8_t q[4][16][4];
    std::uint8_t qh[2][16][4];
  } runs[8];
};
struct TileIQ4_XS {  // x = d * (scale[run] - 32) * kIq4Values[q]
  std::uint16_t d[16];
  std::uint8_t scale[8][16];
  std::uint8_t unused[32];
  struct Run {
    std::uint8_t q[4][16][4];
  } runs[8];
};
// Q3_K and Q2_K: the scales of both halves of an output lie side by side, and the weights so that
// most are met where they lie, without a shift (kernels/avx512/weights.h). Word w of a run is k = 4 w
// to 4 w + 3, h = w / 4 its half.
// x = d * scale[run][o][h] * (q - 4). Words 0, 1, 2 are bits 0 to 2 of q[0], q[1], q[2], words 4, 5, 6
// bits 3 to 5. The low two bits of word 3 are bits 6 and 7 of q[0], the third one is bit 7 of q[1];
// those of word 7 are bits 6 and 7 of q[2], and bit 6 of q[1].
struct TileQ3_K {
  std::uint16_t d[16];
  std::int8_t scale[8][16][2];
  std::uint8_t unused[32];
  struct Run {
    std::uint8_t q[3][16][4];
  } runs[8];
};
// x = d * (scale[run][o][h] % 16) * q - dmin * (scale[run][o][h] / 16). Word w is bits 2 i and 2 i + 1
// of q[w % 2], i = w / 2.
struct TileQ2_K {
  std::uint16_t d[16], dmin[16];
  std::uint8_t scale[8][16][2];
  struct Run {
    std::uint8_t q[2][16][4];
  } runs[8];
};
// What the blocks of wide_block.h become: x = d * scale[run][h] * (q - 128), with h as for Q6_K and
// q as for Q8_0. The magnitude of scale is at most 31, that of q - 128 at most 62.
struct TileWide {
  float d[16];
  std::int8_t scale[8][2][16];
  struct Run {
    std::uint8_t q[8][16][4];
  } runs[8];
};
static_assert(sizeof(TileWide) == 4416);
static_assert(sizeof(TileQ8_0) == 544 && sizeof(TileQ4_0) == 288 && sizeof(TileQ4_1) == 320 &&
              sizeof(TileQ5_0) == 352 && sizeof(TileQ5_1) == 384 && sizeof(TileMXFP4) == 272);
static_assert(sizeof(TileQ4_K) == 2368 && sizeof(TileQ5_K) == 2880 && sizeof(TileQ6_K) == 3392);
static_assert(sizeof(TileIQ4_NL) == 288 && sizeof(TileIQ4_XS) == 2240 && sizeof(TileQ3_K) == 1856 &&
              sizeof(TileQ2_K) == 1344);

// ---- Cache blocks -------------------------------------------------------------------------------
// A cache block holds the keys or values of one head at 32 consecutive positions: block b of a
// sequence holds positions [32 b, 32 b + 32). Keys lie transposed, with positions in the lanes.
// In blocks of q8_0 four adjacent bytes are what one integer product adds up: 4 dimensions of a key,
// or the values of 4 positions. In blocks of q4_0 the lower halves of four adjacent bytes are that, and
// the upper halves are the next 4. 32 dimensions of a position share a scale.
//   x = d * q;  q4_0: q from -8 to 7, stored as q + 8
//   K  f32, f16, bf16: [head_dim][32]
//      q8_0: int8 [head_dim / 4][32][4 dimensions], then f16 scales [head_dim / 32][32]
//      q4_0: uint8 [head_dim / 8][32][4 and 4 dimensions], then f16 scales as in q8_0
//   V  f32, f16, bf16: [32][head_dim]
//      q8_0: int8 [32 / 4][head_dim][4 positions], then f16 scales [head_dim / 32][32]
//      q4_0: uint8 [32 / 8][head_dim][4 and 4 positions], then f16 scales as in q8_0
inline constexpr int kKvBlock = 32;

enum class KvType : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0 };
inline constexpr int kKvTypes = 5;
// Whether its numbers are integers with scales, so that head sizes are multiples of 32. The function is
// static, so each instruction set has a copy of its own.
static constexpr bool HasScales(KvType type) {
  return type == KvType::kQ8_0 || type == KvType::kQ4_0;
}

}  // namespace foretoken::tensor
