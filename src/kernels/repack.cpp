// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

using tensor::BlockQ4_0;
using tensor::BlockQ6_K;
using tensor::BlockQ8_0;
using tensor::kBlock;
using tensor::kSuperBlock;
using tensor::kTileOutputs;
using tensor::TileQ4_0;
using tensor::TileQ6_K;
using tensor::TileQ8_0;
using tensor::TileType;

std::uint32_t Word(const void* bytes, int i) {
  std::uint32_t word;
  std::memcpy(&word, static_cast<const std::byte*>(bytes) + 4 * i, 4);
  return word;
}

template <typename T>
void RepackFloat(const T* rows, int n_outputs, int k, T* strip) {
  constexpr int kStep =
      64;  // k at a time: the strip's part stays in the first-level cache while 16 rows fill it
  if (n_outputs < kTileOutputs)
    std::memset(strip, 0, sizeof(T) * kTileOutputs * static_cast<std::size_t>(k));
  for (int begin = 0; begin < k; begin += kStep) {
    const int end = begin + kStep < k ? begin + kStep : k;
    for (int o = 0; o < n_outputs; ++o) {
      const T* row = rows + static_cast<std::int64_t>(o) * k;
      for (int i = begin; i < end; ++i)
        strip[static_cast<std::int64_t>(i) * kTileOutputs + o] = row[i];
    }
  }
}

void PutBlock(const BlockQ8_0& block, int o, TileQ8_0& tile) {
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t q = Word(block.qs, i) ^ 0x80808080u;  // + 128
    std::memcpy(tile.q[i][o], &q, 4);
  }
  tile.d[o] = block.d;
}

// The file pairs values j and j + 16 in a byte; the tile pairs j and j + 4 (see block_layout.h).
void PutBlock(const BlockQ4_0& block, int o, TileQ4_0& tile) {
  constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0xf0f0f0f0u;
  const std::uint32_t w0 = Word(block.qs, 0), w1 = Word(block.qs, 1);
  const std::uint32_t w2 = Word(block.qs, 2), w3 = Word(block.qs, 3);
  const std::uint32_t q[4] = {(w0 & kLow) | ((w1 & kLow) << 4), (w2 & kLow) | ((w3 & kLow) << 4),
                              ((w0 >> 4) & kLow) | (w1 & kHigh), ((w2 >> 4) & kLow) | (w3 & kHigh)};
  for (int i = 0; i < 4; ++i) std::memcpy(tile.q[i][o], &q[i], 4);
  tile.d[o] = block.d;
}

// One run of 32 values of a super-block (see dequantize.cpp). In words of 4 values the tile has the
// file's order, but its bits elsewhere.
void PutRun(const BlockQ6_K& block, int run, int o, TileQ6_K& tile) {
  const int half = run / 4, part = run % 4;
  const std::uint8_t* ql = block.ql + half * 64 + part % 2 * kBlock;
  const std::uint8_t* qh = block.qh + half * kBlock;
  for (int i = 0; i < 4; ++i) {
    const auto low = [&](int word) { return (Word(ql, word) >> (part / 2 * 4)) & 0x0f0f0f0fu; };
    const std::uint32_t q = low(2 * i) | low(2 * i + 1) << 4;
    std::memcpy(tile.ql[i][o], &q, 4);
  }
  for (int h = 0; h < 2; ++h) {
    std::uint32_t high = 0;
    for (int f = 0; f < 4; ++f)
      high |= ((Word(qh, 4 * h + f) >> (part * 2)) & 0x03030303u) << (2 * f);
    std::memcpy(tile.qh[h][o], &high, 4);
    tile.scale[h][o] = block.scales[2 * run + h];
  }
  tile.d[o] = block.d;
}

constexpr BlockQ6_K kNoQ6_K = {};  // scales of zero
constexpr BlockQ8_0 kNoQ8_0 = {};
constexpr BlockQ4_0 kNoQ4_0 = {0,
                               {0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88,  //
                                0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88}};

template <typename Block, typename Tile>
void RepackBlocks(const Block* rows, const Block& none, int n_outputs, int k, Tile* strip) {
  const int n_blocks = k / kBlock;
  for (int b = 0; b < n_blocks; ++b)
    for (int o = 0; o < kTileOutputs; ++o)
      PutBlock(o < n_outputs ? rows[static_cast<std::int64_t>(o) * n_blocks + b] : none, o,
               strip[b]);
}

void RepackSuperBlocks(const BlockQ6_K* rows, int n_outputs, int k, TileQ6_K* strip) {
  constexpr int kRuns = kSuperBlock / kBlock;
  const int n_blocks = k / kSuperBlock;
  for (int b = 0; b < n_blocks; ++b, strip += kRuns) {
    for (int o = 0; o < kTileOutputs; ++o) {
      const BlockQ6_K& block =
          o < n_outputs ? rows[static_cast<std::int64_t>(o) * n_blocks + b] : kNoQ6_K;
      for (int run = 0; run < kRuns; ++run) PutRun(block, run, o, strip[run]);
    }
  }
}

// Bytes of one row in the file.
std::size_t RowBytes(TileType type, int k) {
  const auto n = static_cast<std::size_t>(k);
  switch (type) {
    case TileType::kF32:
      return n * 4;
    case TileType::kF16:
    case TileType::kBF16:
      return n * 2;
    case TileType::kQ8_0:
      return n / kBlock * sizeof(BlockQ8_0);
    case TileType::kQ4_0:
      return n / kBlock * sizeof(BlockQ4_0);
    case TileType::kQ6_K:
      return n / kSuperBlock * sizeof(BlockQ6_K);
  }
  return 0;
}

}  // namespace

// Tiles hold the same numbers as sixteen rows of the file, and no padding; but those of Q6_K repeat
// the d of a super-block.
std::size_t StripBytes(TileType type, int k) {
  if (type == TileType::kQ6_K) return static_cast<std::size_t>(k / kBlock) * sizeof(TileQ6_K);
  return RowBytes(type, k) * kTileOutputs;
}

void Repack(TileType type, const void* rows, int n_out, int k, int tile_begin, int tile_end,
            void* dst) {
  FORETOKEN_CHECK(!tensor::IsQuantised(type) || k % kBlock == 0);
  FORETOKEN_CHECK(type != TileType::kQ6_K || k % kSuperBlock == 0);
  FORETOKEN_CHECK(0 <= tile_begin && tile_end <= TilesFor(n_out));
  const std::size_t strip_bytes = StripBytes(type, k), row_bytes = RowBytes(type, k);
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const auto first = static_cast<std::size_t>(tile) * kTileOutputs;
    const void* src = static_cast<const std::byte*>(rows) + first * row_bytes;
    void* strip = static_cast<std::byte*>(dst) + static_cast<std::size_t>(tile) * strip_bytes;
    const int left = n_out - tile * kTileOutputs;
    const int n_outputs = left < kTileOutputs ? left : kTileOutputs;
    switch (type) {
      case TileType::kF32:
        RepackFloat(static_cast<const std::uint32_t*>(src), n_outputs, k,
                    static_cast<std::uint32_t*>(strip));
        break;
      case TileType::kF16:
      case TileType::kBF16:
        RepackFloat(static_cast<const std::uint16_t*>(src), n_outputs, k,
                    static_cast<std::uint16_t*>(strip));
        break;
      case TileType::kQ8_0:
        RepackBlocks(static_cast<const BlockQ8_0*>(src), kNoQ8_0, n_outputs, k,
                     static_cast<TileQ8_0*>(strip));
        break;
      case TileType::kQ4_0:
        RepackBlocks(static_cast<const BlockQ4_0*>(src), kNoQ4_0, n_outputs, k,
                     static_cast<TileQ4_0*>(strip));
        break;
      case TileType::kQ6_K:
        RepackSuperBlocks(static_cast<const BlockQ6_K*>(src), n_outputs, k,
                          static_cast<TileQ6_K*>(strip));
        break;
    }
  }
}

}  // namespace foretoken::kernels
