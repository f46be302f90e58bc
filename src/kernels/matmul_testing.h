// SPDX-License-Identifier: Apache-2.0
// kernels/matmul_testing.h: matrices in file layout, rows of activations and a call of matmul, for
// the tests of its implementations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/dispatch.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {

using tensor::IsQuantised;
using tensor::TileType;

inline constexpr TileType kFloatTypes[] = {TileType::kF32, TileType::kF16, TileType::kBF16};
inline const tensor::DTypeInfo& FileType(TileType type) {
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (info.tile == type) return info;
  ADD_FAILURE() << "no type has tile type " << static_cast<int>(type);
  return tensor::AllDTypes()[0];
}
// Whether this type is the first one in the table that has its tile. Several types share a tile.
inline bool IsFirst(const tensor::DTypeInfo& info) {
  return &info == &FileType(info.tile);
}
inline std::vector<TileType> QuantisedTypes() {
  std::vector<TileType> types;
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (IsQuantised(info.tile) && IsFirst(info)) types.push_back(info.tile);
  return types;
}

// The types for which a part of a table has a product.
inline std::vector<TileType> TypesOf(const Kernels& part) {
  std::vector<TileType> types;
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (part.matmul[static_cast<int>(info.tile)] != nullptr && IsFirst(info))
      types.push_back(info.tile);
  return types;
}

inline std::string TypeName(TileType type) {
  return std::string(FileType(type).name);
}

inline std::vector<TileType> AllTypes() {
  std::vector<TileType> types = QuantisedTypes();
  types.insert(types.end(), std::begin(kFloatTypes), std::end(kFloatTypes));
  return types;
}

// The least inner size from k on that the type allows.
inline int InnerSize(TileType type, int k) {
  const int block = tensor::TileValues(type);
  return (k + block - 1) / block * block;
}

// A matrix in file layout. `wild` draws scales from the whole range of finite halves. Otherwise all
// values are about 1.
struct Matrix {
  Matrix(TileType tile_type, int outputs, int inner, unsigned seed, bool wild = false)
      : type(tile_type), n_out(outputs), k(InnerSize(tile_type, inner)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const std::size_t n = static_cast<std::size_t>(n_out) * static_cast<std::size_t>(k);
    if (!IsQuantised(type)) {
      const auto value = [&] {
        return uniform(random) * (wild ? std::exp2(uniform(random) * 14) : 1.0f);
      };
      for (std::size_t i = 0; i < n; ++i) Append(value());
      return;
    }
    const auto& info = FileType(type);
    const bool super = tensor::TileValues(type) == tensor::kSuperBlock;
    const float largest_d = super ? 1.0f / 4096 : 1.0f / 64;
    bytes.resize(n / static_cast<std::size_t>(info.block_values) * BlockBytes());
    for (std::byte& q : bytes) q = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < bytes.size(); at += BlockBytes()) {
      if (type == TileType::kMXFP4) bytes[at] = Exponent(random(), wild);
      for (const std::size_t half : Halves()) {
        const std::uint16_t d =
            wild ? static_cast<std::uint16_t>((random() & 0x83ffu) | (random() % 31 << 10))
                 : tensor::F32ToF16(uniform(random) * largest_d);
        std::memcpy(&bytes[at + half], &d, 2);
      }
    }
  }

  void Append(float v) {
    const std::uint16_t half = type == TileType::kF16 ? tensor::F32ToF16(v) : tensor::F32ToBF16(v);
    type == TileType::kF32 ? AppendBytes(&v, 4) : AppendBytes(&half, 2);
  }
  void AppendBytes(const void* p, std::size_t n) {
    bytes.insert(bytes.end(), static_cast<const std::byte*>(p),
                 static_cast<const std::byte*>(p) + n);
  }

  // The exponent of an MXFP4 block: 2^-4 to 2^-7, or anything from 2^-128 to 2^17.
  static std::byte Exponent(std::mt19937::result_type random, bool wild) {
    return static_cast<std::byte>(wild ? random % 146 : 121 + random % 4);
  }

  // The size of a block of a quantised type, and where its halves lie (d, then m or dmin).
  std::size_t BlockBytes() const { return static_cast<std::size_t>(FileType(type).block_bytes); }
  std::vector<std::size_t> Halves() const {
    if (type == TileType::kQ6_K) return {offsetof(tensor::BlockQ6_K, d)};
    if (type == TileType::kMXFP4) return {};
    if (type == TileType::kQ3_K) return {offsetof(tensor::BlockQ3_K, d)};
    if (type == TileType::kQ2_K)
      return {offsetof(tensor::BlockQ2_K, d), offsetof(tensor::BlockQ2_K, dmin)};
    for (const TileType with_minima :
         {TileType::kQ4_1, TileType::kQ5_1, TileType::kQ4_K, TileType::kQ5_K})
      if (type == with_minima) return {0, 2};
    return {0};
  }

  // Sets every byte of a quantised type except those of the halves and of exponents.
  void FillWith(std::byte value) {
    const std::vector<std::size_t> halves = Halves();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t at = i % BlockBytes();
      const bool in_half = std::any_of(halves.begin(), halves.end(),
                                       [&](std::size_t h) { return at == h || at == h + 1; });
      const bool exponent = type == TileType::kMXFP4 && at == 0;
      if (!in_half && !exponent) bytes[i] = value;
    }
  }

  std::vector<float> Values() const {
    std::vector<float> values(static_cast<std::size_t>(n_out) * static_cast<std::size_t>(k));
    tensor::Dequantize(FileType(type).type, bytes.data(), static_cast<std::int64_t>(values.size()),
                       values.data());
    return values;
  }

  AlignedBytes Tiles() const {
    AlignedBytes tiles(TiledBytes(type, n_out, k));
    Repack(FileType(type).type, bytes.data(), n_out, k, 0, TilesFor(n_out), tiles.data());
    return tiles;
  }

  TileType type;
  int n_out, k;
  std::vector<std::byte> bytes;
};

// Rows of activations, as floats and as quantised blocks. The blocks are random too: they are not
// the quantised floats.
struct Rows {
  Rows(int rows, int inner, unsigned seed, float scale = 1.0f)
      : n(rows),
        k(inner),
        x_stride(inner + 16),
        x(At(rows, inner + 16)),
        xq(At(rows, inner)),
        xd(At(rows, inner / 32)),
        xs(At(rows, inner / 32 * 2)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& v : x.span()) v = scale * uniform(random);
    for (float& v : xd.span()) v = scale * std::fabs(uniform(random));
    for (std::int8_t& v : xq.span())
      v = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    Sum();
  }
  static std::size_t At(int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  }
  void FillWith(std::int8_t value) {
    for (std::int8_t& q : xq.span()) q = value;
    Sum();
  }
  void Sum() {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      xs[i] = 0;
      for (std::size_t j = 0; j < (i % 2 == 0 ? 16 : 32); ++j) xs[i] += xq[i / 2 * 32 + j];
    }
  }

  int n, k;
  std::int64_t x_stride;
  AlignedBuffer<float> x;
  AlignedBuffer<std::int8_t> xq;
  AlignedBuffer<float> xd;
  AlignedBuffer<std::int32_t> xs;
};

struct Range {
  int begin, end;
};

inline constexpr float kUntouched = -12345.5f;

// y of rows [row, row + n_rows), or of the rows row + x_rows[i]. `before` is what the buffer of y
// held before the call.
inline std::vector<float> Multiply(void (*matmul)(const MatmulArgs&), TileType type,
                                   const AlignedBytes& tiles, int n_tiles, const Rows& rows,
                                   int row, int n_rows, Range range, bool accumulate,
                                   float before = kUntouched,
                                   const std::int32_t* x_rows = nullptr) {
  const std::int64_t y_stride = 16 * n_tiles + 16;
  AlignedBuffer<float> y(Rows::At(n_rows, 16 * n_tiles + 16));
  for (float& v : y.span()) v = before;
  MatmulArgs args = {};
  args.tiles = tiles.data();
  args.k = rows.k;
  args.tile_begin = range.begin;
  args.tile_end = range.end;
  args.n_rows = n_rows;
  if (IsQuantised(type)) {
    args.xq = rows.xq.data() + std::int64_t{row} * rows.k;
    args.xd = rows.xd.data() + std::int64_t{row} * (rows.k / 32);
    args.xs = rows.xs.data() + std::int64_t{row} * (rows.k / 32 * 2);
  } else {
    args.x = rows.x.data() + row * rows.x_stride;
    args.x_stride = rows.x_stride;
  }
  args.x_rows = x_rows;
  args.y = y.data();
  args.y_stride = y_stride;
  args.accumulate = accumulate;
  matmul(args);
  return {y.data(), y.data() + y.size()};
}

inline std::vector<float> Multiply(Isa isa, TileType type, const AlignedBytes& tiles, int n_tiles,
                                   const Rows& rows, int row, int n_rows, Range range,
                                   bool accumulate, float before = kUntouched) {
  return Multiply(KernelsFor(isa).matmul[static_cast<int>(type)], type, tiles, n_tiles, rows, row,
                  n_rows, range, accumulate, before);
}

// Also of NaNs.
inline testing::AssertionResult IdenticalBits(const std::vector<float>& a,
                                              const std::vector<float>& b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

}  // namespace foretoken::kernels
