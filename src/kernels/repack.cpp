// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/wide_block.h"

namespace foretoken::kernels {
namespace {

using tensor::kBlock;
using tensor::kSuperBlock;
using tensor::kTileOutputs;
using tensor::TileType;

std::uint32_t Word(const void* bytes, int i) {
  std::uint32_t word;
  std::memcpy(&word, static_cast<const std::byte*>(bytes) + 4 * i, 4);
  return word;
}

// Rows of floats may lie anywhere: safetensors files align nothing.
template <typename T>
void RepackFloat(const void* rows, int n_outputs, int k, void* strip) {
  // How many k are repacked at a time. This part of the strip stays in the first-level cache while
  // 16 rows fill it.
  constexpr int kStep = 64;
  const auto* from = static_cast<const std::byte*>(rows);
  auto* to = static_cast<T*>(strip);
  if (n_outputs < kTileOutputs)
    std::memset(to, 0, sizeof(T) * kTileOutputs * static_cast<std::size_t>(k));
  for (int begin = 0; begin < k; begin += kStep) {
    const int end = begin + kStep < k ? begin + kStep : k;
    for (int o = 0; o < n_outputs; ++o) {
      T values[kStep];
      const std::int64_t at = static_cast<std::int64_t>(o) * k + begin;
      std::memcpy(values, from + at * static_cast<std::int64_t>(sizeof(T)),
                  sizeof(T) * static_cast<std::size_t>(end - begin));
      for (int i = begin; i < end; ++i)
        to[static_cast<std::int64_t>(i) * kTileOutputs + o] = values[i - begin];
    }
  }
}

// Each type has its block, its tile, and a function that makes a block output o of the tile.
struct Q8_0 {
  static constexpr int kValues = kBlock;
  using Block = tensor::BlockQ8_0;
  using Tile = tensor::TileQ8_0;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t q = Word(block.qs, i) ^ 0x80808080u;  // + 128
      std::memcpy(tile.q[i][o], &q, 4);
    }
    tile.d[o] = block.d;
  }
};

constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0xf0f0f0f0u, kOnes = 0x01010101u,
                        kTwoOnes = 0x03030303u;

// The file pairs values j and j + 16 in a byte; the tile pairs j and j + 4.
void PutNibbles(const std::uint8_t* qs, int o, std::uint8_t (&q)[4][16][4]) {
  const std::uint32_t w0 = Word(qs, 0), w1 = Word(qs, 1), w2 = Word(qs, 2), w3 = Word(qs, 3);
  const std::uint32_t words[4] = {
      (w0 & kLow) | ((w1 & kLow) << 4), (w2 & kLow) | ((w3 & kLow) << 4),
      ((w0 >> 4) & kLow) | (w1 & kHigh), ((w2 >> 4) & kLow) | (w3 & kHigh)};
  for (int i = 0; i < 4; ++i) std::memcpy(q[i][o], &words[i], 4);
}

// Bit k of the file's 32 bits is the fifth bit of value k. The tile gathers the bits of k = 4 f + j
// in byte j.
void PutFifthBits(const std::uint8_t* qh, int o, std::uint8_t (&to)[16][4]) {
  const std::uint32_t bits = Word(qh, 0);
  for (int j = 0; j < 4; ++j) {
    std::uint32_t byte = 0;
    for (int f = 0; f < 8; ++f) byte |= (bits >> (4 * f + j) & 1u) << f;
    to[o][j] = static_cast<std::uint8_t>(byte);
  }
}

template <typename FileBlock, typename FileTile, bool kFifth, bool kMinimum>
struct SimpleNibbles {
  static constexpr int kValues = kBlock;
  using Block = FileBlock;
  using Tile = FileTile;
  static void Put(const Block& block, int o, Tile& tile) {
    PutNibbles(block.qs, o, tile.q);
    if constexpr (kFifth) PutFifthBits(block.qh, o, tile.qh);
    if constexpr (kMinimum) tile.m[o] = block.m;
    tile.d[o] = block.d;
  }
};
using Q4_0 = SimpleNibbles<tensor::BlockQ4_0, tensor::TileQ4_0, false, false>;
using Q4_1 = SimpleNibbles<tensor::BlockQ4_1, tensor::TileQ4_1, false, true>;
using Q5_0 = SimpleNibbles<tensor::BlockQ5_0, tensor::TileQ5_0, true, false>;
using Q5_1 = SimpleNibbles<tensor::BlockQ5_1, tensor::TileQ5_1, true, true>;
using IQ4_NL = SimpleNibbles<tensor::BlockIQ4_NL, tensor::TileIQ4_NL, false, false>;

struct MXFP4 {
  static constexpr int kValues = kBlock;
  using Block = tensor::BlockMXFP4;
  using Tile = tensor::TileMXFP4;
  static void Put(const Block& block, int o, Tile& tile) {
    PutNibbles(block.qs, o, tile.q);
    tile.e[o] = block.e;
  }
};

struct IQ4_XS {
  static constexpr int kValues = kSuperBlock;
  using Block = tensor::BlockIQ4_XS;
  using Tile = tensor::TileIQ4_XS;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) {
      PutNibbles(block.qs + run * kBlock / 2, o, tile.runs[run].q);
      const int low = block.scales_l[run / 2] >> (run % 2 * 4) & 15;
      tile.scale[run][o] = static_cast<std::uint8_t>(low | (block.scales_h >> (2 * run) & 3) << 4);
    }
    tile.d[o] = block.d;
    tile.unused[2 * o] = tile.unused[2 * o + 1] = 0;
  }
};

// Scale and minimum of a run have six bits each, in twelve bytes (see dequantize.cpp).
std::uint8_t ScaleOf(const std::uint8_t* s, int run) {
  return static_cast<std::uint8_t>(run < 4 ? s[run] & 63
                                           : (s[run + 4] & 15) | (s[run - 4] >> 6) << 4);
}
std::uint8_t MinimumOf(const std::uint8_t* s, int run) {
  return static_cast<std::uint8_t>(run < 4 ? s[run + 4] & 63
                                           : (s[run + 4] >> 4) | (s[run] >> 6) << 4);
}

// One bit of each of 32 values: bit `run` of byte l is that of value l.
void PutHighBits(const std::uint8_t* qh, int run, int o, std::uint8_t (&to)[16][4]) {
  std::uint32_t bits = 0;
  for (int f = 0; f < 8; ++f) bits |= ((Word(qh, f) >> run) & kOnes) << f;
  std::memcpy(to[o], &bits, 4);
}

// Two bits of each of 32 values: bits 2 part and up of byte l are those of value l.
void PutTwoBits(const std::uint8_t* bytes, int part, int o, std::uint8_t (&to)[2][16][4]) {
  for (int h = 0; h < 2; ++h) {
    std::uint32_t bits = 0;
    for (int f = 0; f < 4; ++f)
      bits |= ((Word(bytes, 4 * h + f) >> (part * 2)) & kTwoOnes) << (2 * f);
    std::memcpy(to[h][o], &bits, 4);
  }
}

// The tile keeps the file's order of words of 4 values, but places the bits of a word differently.
template <typename FileBlock, typename FileTile, bool kFifth>
struct KNibbles {
  static constexpr int kValues = kSuperBlock;
  using Block = FileBlock;
  using Tile = FileTile;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) {
      const std::uint8_t* qs = block.qs + run / 2 * kBlock;
      const auto low = [&](int word) { return (Word(qs, word) >> (run % 2 * 4)) & kLow; };
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t q = low(2 * i) | low(2 * i + 1) << 4;
        std::memcpy(tile.runs[run].q[i][o], &q, 4);
      }
      if constexpr (kFifth) PutHighBits(block.qh, run, o, tile.runs[run].qh);
      tile.scale[run][o] = ScaleOf(block.scales, run);
      tile.minimum[run][o] = MinimumOf(block.scales, run);
    }
    tile.d[o] = block.d;
    tile.dmin[o] = block.dmin;
  }
};
using Q4_K = KNibbles<tensor::BlockQ4_K, tensor::TileQ4_K, false>;
using Q5_K = KNibbles<tensor::BlockQ5_K, tensor::TileQ5_K, true>;

struct Q6_K {
  static constexpr int kValues = kSuperBlock;
  using Block = tensor::BlockQ6_K;
  using Tile = tensor::TileQ6_K;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) PutRun(block, run, o, tile);
    tile.d[o] = block.d;
    tile.unused[2 * o] = tile.unused[2 * o + 1] = 0;
  }
  static void PutRun(const Block& block, int run, int o, Tile& tile) {
    const int half = run / 4, part = run % 4;
    const std::uint8_t* ql = block.ql + half * 64 + part % 2 * kBlock;
    const std::uint8_t* qh = block.qh + half * kBlock;
    for (int i = 0; i < 4; ++i) {
      const auto low = [&](int word) { return (Word(ql, word) >> (part / 2 * 4)) & kLow; };
      const std::uint32_t q = low(2 * i) | low(2 * i + 1) << 4;
      std::memcpy(tile.runs[run].q[i][o], &q, 4);
    }
    PutTwoBits(qh, part, o, tile.runs[run].qh);
    for (int h = 0; h < 2; ++h) tile.scale[run][h][o] = block.scales[2 * run + h];
  }
};

// Word w of the 32 values of a run: bits 2 part and up of word w of bytes.
std::uint32_t TwoBitsOf(const std::uint8_t* bytes, int part, int w) {
  return Word(bytes, w) >> (part * 2) & kTwoOnes;
}

struct Q3_K {
  static constexpr int kValues = kSuperBlock;
  using Block = tensor::BlockQ3_K;
  using Tile = tensor::TileQ3_K;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) {
      PutRun(block, run, o, tile.runs[run]);
      for (int h = 0; h < 2; ++h) tile.scale[run][o][h] = ScaleOfPart(block.scales, 2 * run + h);
    }
    tile.d[o] = block.d;
    tile.unused[2 * o] = tile.unused[2 * o + 1] = 0;
  }
  static void PutRun(const Block& block, int run, int o, Tile::Run& to) {
    const auto low = [&](int w) { return TwoBitsOf(block.qs + run / 4 * kBlock, run % 4, w); };
    const auto third = [&](int w) { return Word(block.hmask, w) >> run & kOnes; };
    const auto value = [&](int w) { return low(w) | third(w) << 2; };
    const std::uint32_t rest[3] = {low(3) << 6, third(3) << 7 | third(7) << 6, low(7) << 6};
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t bits = value(i) | value(i + 4) << 3 | rest[i];
      std::memcpy(to.q[i][o], &bits, 4);
    }
  }
  // Six bits less 32, in twelve bytes (see dequantize.cpp).
  static std::int8_t ScaleOfPart(const std::uint8_t* s, int part) {
    const int low = part < 8 ? s[part] & 15 : s[part - 8] >> 4;
    return static_cast<std::int8_t>((low | (s[8 + part % 4] >> (part / 4 * 2) & 3) << 4) - 32);
  }
};

struct Q2_K {
  static constexpr int kValues = kSuperBlock;
  using Block = tensor::BlockQ2_K;
  using Tile = tensor::TileQ2_K;
  static void Put(const Block& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) {
      for (int i = 0; i < 2; ++i) {
        std::uint32_t bits = 0;
        for (int f = 0; f < 4; ++f)
          bits |= TwoBitsOf(block.qs + run / 4 * kBlock, run % 4, 2 * f + i) << (2 * f);
        std::memcpy(tile.runs[run].q[i][o], &bits, 4);
      }
      for (int h = 0; h < 2; ++h) tile.scale[run][o][h] = block.scales[2 * run + h];
    }
    tile.d[o] = block.d;
    tile.dmin[o] = block.dmin;
  }
};

struct Wide {
  using Tile = tensor::TileWide;
  static void Put(const tensor::BlockWide& block, int o, Tile& tile) {
    for (int run = 0; run < kSuperBlock / kBlock; ++run) {
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t q = Word(block.q + run * kBlock, i) ^ 0x80808080u;  // + 128
        std::memcpy(tile.runs[run].q[i][o], &q, 4);
      }
      for (int h = 0; h < 2; ++h) tile.scale[run][h][o] = block.scale[2 * run + h];
    }
    tile.d[o] = block.d;
  }
};

// A type whose blocks are kept as those of a wider one.
template <typename FileBlock, typename Wider>
struct Widened {
  static constexpr int kValues = kSuperBlock;
  using Block = FileBlock;
  using Tile = typename Wider::Tile;
  static void Put(const Block& block, int o, Tile& tile) {
    Wider::Put(tensor::Widen(block), o, tile);
  }
};

template <typename Type>
void RepackBlocks(const void* rows, int n_outputs, int k, void* strip) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename Type::Block));
  const auto* bytes = static_cast<const std::byte*>(rows);
  auto* tiles = static_cast<typename Type::Tile*>(strip);
  const int n_blocks = k / Type::kValues;
  for (int b = 0; b < n_blocks; ++b) {
    for (int o = 0; o < kTileOutputs; ++o) {
      typename Type::Block block = {};  // rows of a mapped file have no alignment of their own
      if (o < n_outputs)
        std::memcpy(&block, bytes + (std::int64_t{o} * n_blocks + b) * kBytes, sizeof block);
      Type::Put(block, o, tiles[b]);
    }
  }
}

// How strips of a type are made.
using RepackFunction = void (*)(const void* rows, int n_outputs, int k, void* strip);

RepackFunction RepackOf(tensor::DType type) {
  using tensor::DType;
  switch (type) {
    case DType::kF32:
      return RepackFloat<std::uint32_t>;
    case DType::kF16:
    case DType::kBF16:
      return RepackFloat<std::uint16_t>;
    case DType::kQ8_0:
      return RepackBlocks<Q8_0>;
    case DType::kQ4_0:
      return RepackBlocks<Q4_0>;
    case DType::kQ4_1:
      return RepackBlocks<Q4_1>;
    case DType::kQ5_0:
      return RepackBlocks<Q5_0>;
    case DType::kQ5_1:
      return RepackBlocks<Q5_1>;
    case DType::kQ4_K:
      return RepackBlocks<Q4_K>;
    case DType::kQ5_K:
      return RepackBlocks<Q5_K>;
    case DType::kQ6_K:
      return RepackBlocks<Q6_K>;
    case DType::kMXFP4:
      return RepackBlocks<MXFP4>;
    case DType::kIQ4_NL:
      return RepackBlocks<IQ4_NL>;
    case DType::kIQ4_XS:
      return RepackBlocks<IQ4_XS>;
    case DType::kQ3_K:
      return RepackBlocks<Q3_K>;
    case DType::kQ2_K:
      return RepackBlocks<Q2_K>;
    case DType::kIQ3_S:
      return RepackBlocks<Widened<tensor::BlockIQ3_S, Wide>>;
    case DType::kIQ3_XXS:
      return RepackBlocks<Widened<tensor::BlockIQ3_XXS, Wide>>;
    case DType::kIQ2_S:
      return RepackBlocks<Widened<tensor::BlockIQ2_S, Wide>>;
    case DType::kIQ2_XS:
      return RepackBlocks<Widened<tensor::BlockIQ2_XS, Wide>>;
    case DType::kIQ2_XXS:
      return RepackBlocks<Widened<tensor::BlockIQ2_XXS, Wide>>;
    case DType::kIQ1_M:
      return RepackBlocks<Widened<tensor::BlockIQ1_M, Wide>>;
    case DType::kIQ1_S:
      return RepackBlocks<Widened<tensor::BlockIQ1_S, Wide>>;
    case DType::kTQ2_0:
      return RepackBlocks<Widened<tensor::BlockTQ2_0, Q2_K>>;
    case DType::kTQ1_0:
      return RepackBlocks<Widened<tensor::BlockTQ1_0, Q2_K>>;
  }
  return nullptr;
}

// Bytes of a tile, in the order of TileType; of floats, those of 16 values.
constexpr std::size_t kTileBytes[tensor::kTileTypes] = {
    64,
    32,
    32,
    sizeof(tensor::TileQ8_0),
    sizeof(tensor::TileQ4_0),
    sizeof(tensor::TileQ4_1),
    sizeof(tensor::TileQ5_0),
    sizeof(tensor::TileQ5_1),
    sizeof(tensor::TileQ4_K),
    sizeof(tensor::TileQ5_K),
    sizeof(tensor::TileQ6_K),
    sizeof(tensor::TileMXFP4),
    sizeof(tensor::TileIQ4_NL),
    sizeof(tensor::TileIQ4_XS),
    sizeof(tensor::TileQ3_K),
    sizeof(tensor::TileQ2_K),
    sizeof(tensor::TileWide),
};

}  // namespace

std::size_t StripBytes(TileType type, int k) {
  return static_cast<std::size_t>(k / tensor::TileValues(type)) *
         kTileBytes[static_cast<std::size_t>(type)];
}

void Repack(tensor::DType type, const void* rows, int n_out, int k, int tile_begin, int tile_end,
            void* dst) {
  const tensor::DTypeInfo& info = tensor::InfoOf(type);
  FORETOKEN_CHECK(k % info.block_values == 0);
  FORETOKEN_CHECK(0 <= tile_begin && tile_end <= TilesFor(n_out));
  const RepackFunction repack = RepackOf(type);
  const std::size_t strip_bytes = StripBytes(info.tile, k);
  const std::size_t row_bytes =
      static_cast<std::size_t>(k / info.block_values) * static_cast<std::size_t>(info.block_bytes);
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const auto first = static_cast<std::size_t>(tile) * kTileOutputs;
    const int left = n_out - tile * kTileOutputs;
    repack(static_cast<const std::byte*>(rows) + first * row_bytes,
           left < kTileOutputs ? left : kTileOutputs, k,
           static_cast<std::byte*>(dst) + static_cast<std::size_t>(tile) * strip_bytes);
  }
}

}  // namespace foretoken::kernels
