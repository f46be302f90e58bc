// SPDX-License-Identifier: Apache-2.0
// tensor/block_layout.h: how numbers lie in memory: GGUF's blocks as files hold them, and the tiles
// that kernels read. PODs and plain enums only: kernels of every instruction set include this file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretoken::tensor {

// ---- Blocks as GGUF files hold them (ggml's layouts; d and m are IEEE half precision bits)
// -------------------------------
inline constexpr int kBlock = 32;        // values in a simple block
inline constexpr int kSuperBlock = 256;  // values in a K-quant block

struct BlockQ4_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};  // x = d * (q - 8); byte j: values j, j + 16
struct BlockQ4_1 {
  std::uint16_t d, m;
  std::uint8_t qs[16];
};  // x = d * q + m
struct BlockQ5_0 {
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};  // x = d * (q - 16)
struct BlockQ5_1 {
  std::uint16_t d, m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};  // x = d * q + m
struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t qs[32];
};  // x = d * q
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
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);

// ---- Tiles: weights repacked at load
// -------------------------------------------------------------------------------------- A matrix
// [n_out, k] becomes ceil(n_out / 16) strips of 16 outputs; a strip runs along k without gaps.
// Outputs lie in the lanes of a vector, so that no kernel ever sums across lanes and the order of a
// sum is the order of k. Missing outputs are zero.
inline constexpr int kTileOutputs = 16;

enum class TileType : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ6_K };
inline constexpr int kTileTypes = 6;

// F32, F16, BF16: for each k, 16 values: strip = [k][16].
// Q8_0, 32 k: q[i][o][j] = value of output o at k = 4 i + j, plus 128 (so unsigned).      544 bytes
struct TileQ8_0 {
  std::uint8_t q[8][16][4];
  std::uint16_t d[16];
};
// Q4_0, 32 k: q[i][o][j] = value at k = 8 i + j in the low nibble, k = 8 i + 4 + j in the high one,
// plus 8.   288 bytes
struct TileQ4_0 {
  std::uint8_t q[4][16][4];
  std::uint16_t d[16];
};
// Q6_K, 32 k: x = d * scale * (q - 32), q of 6 bits. ql: the low four, as in Q4_0. qh: the high two
// of k = 16 h + 4 f + j in bits 2 f and 2 f + 1 of qh[h][o][j]. scale[h][o] belongs to k = 16 h ..
// 16 h + 15. A super-block of the file gives 8 tiles with the same d.  448 bytes
struct TileQ6_K {
  std::uint8_t ql[4][16][4];
  std::uint8_t qh[2][16][4];
  std::int8_t scale[2][16];
  std::uint16_t d[16];
};
static_assert(sizeof(TileQ8_0) == 544 && sizeof(TileQ4_0) == 288 && sizeof(TileQ6_K) == 448);

// ---- Cache blocks: keys and values of 32 consecutive positions of one head
// ------------------------------------------------ Block b of a sequence holds positions [32 b, 32
// b + 32). Keys lie transposed, positions in the lanes:
//   K  f32, f16, bf16: [head_dim][32]        q8_0: int8 [head_dim][32], then f16 scales [head_dim /
//   32][32] V  f32, f16, bf16: [32][head_dim]        q8_0: int8 [32][head_dim], then f16 scales
//   [32][head_dim / 32]
inline constexpr int kKvBlock = 32;

enum class KvType : std::uint8_t { kF32, kF16, kBF16, kQ8_0 };
inline constexpr int kKvTypes = 4;

}  // namespace foretoken::tensor
