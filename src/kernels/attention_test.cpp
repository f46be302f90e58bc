// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/aligned_buffer.h"
#include "kernels/kernels_testing.h"
#include "kernels/parts.h"
#include "kernels/scalar/exp.h"
#include "tensor/dtype.h"

namespace foretoken::kernels {
namespace {

using tensor::kKvBlock;
using tensor::KvType;

constexpr KvType kAttendedTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0,
                                     KvType::kQ4_0};

// The vector tables. A CPU with AVX-512 also runs the tables that other CPUs use: those of two processors of AMD
// and of all the others, and a stand-in for AVX-VNNI, in AVX-512's coding of its instruction.
std::vector<const Kernels*> AttentionTables() {
  std::vector<const Kernels*> tables = VectorTables();
#if defined(__x86_64__)
  const auto over = [](Isa isa, const Kernels& part, const char* name) {
    Kernels table = Overlay(KernelsFor(isa), part);
    table.isa = name;
    return table;
  };
  static const Kernels others[] = {
      over(Isa::kAvx2, avxvnni::kEvexAttention, "avxvnni (stand-in)"),
      over(Isa::kAvx512, avx512::kFunctions, "avx512 (shared)"),
      over(Isa::kAvx512, avx512::kHalvedAttention, "avx512 (halved)"),
      over(Isa::kAvx512, avx512::kStreamedAttention, "avx512 (streamed)")};
  const auto isas = AvailableIsas();
  if (std::find(isas.begin(), isas.end(), Isa::kAvx512) != isas.end())
    for (const Kernels& other : others) tables.push_back(&other);
#endif
  return tables;
}

struct AttentionShape {
  KvType k_type = KvType::kF16, v_type = KvType::kF16;
  int head_dim = 64, n_group = 1;
  std::vector<int> row_len = {1};
  float k_deviation = 1.0f;
  int window = 0;
  float soft_cap = 0;
  bool sinks = false;
  int values_in_keys = 0;
  int skipped_blocks = 0;

  bool Fits() const {
    return (head_dim % 32 == 0 && values_in_keys % 32 == 0) ||
           !(tensor::HasScales(k_type) || tensor::HasScales(v_type));
  }
  int n_positions() const { return row_len.back(); }
  int row_width() const { return n_group * head_dim; }
  int n_values() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  int result_width() const { return n_group * n_values(); }
  int SeenFrom(int row) const {
    const int length = row_len[static_cast<std::size_t>(row)];
    return window > 0 && length > window ? length - window : 0;
  }
  std::string Text() const {
    return "k " + std::to_string(static_cast<int>(k_type)) + " v " +
           std::to_string(static_cast<int>(v_type)) + " dim " + std::to_string(head_dim) +
           " group " + std::to_string(n_group) + " rows " + std::to_string(row_len.size()) +
           " last " + std::to_string(row_len.back()) + " window " + std::to_string(window) +
           " values in keys " + std::to_string(values_in_keys);
  }
};

// One head's cache, whose blocks lie in reverse order in memory, and the queries. Whatever was not
// stored is 0xff, which is NaN in every type.
class Problem {
 public:
  explicit Problem(const AttentionShape& shape)
      : shape_(shape),
        k_stride_(tensor::KvBlockBytes(shape.k_type, shape.head_dim)),
        v_stride_(tensor::KvBlockBytes(shape.v_type, shape.head_dim)) {
    const int n_blocks = (shape.n_positions() + kKvBlock - 1) / kKvBlock;
    const auto n_values = static_cast<std::size_t>(shape.n_positions() * shape.head_dim);
    keys = Normal(n_values, 11, shape.k_deviation);
    values = Normal(n_values, 12);
    sinks = Normal(shape.n_group, 14);
    queries = Normal(shape.row_len.size() * static_cast<std::size_t>(shape.row_width()), 13);
    k_ = AlignedBytes(k_stride_ * static_cast<std::size_t>(n_blocks));
    v_ = AlignedBytes(v_stride_ * static_cast<std::size_t>(n_blocks));
    std::memset(k_.data(), 0xff, k_.size_bytes());
    std::memset(v_.data(), 0xff, v_.size_bytes());
    for (int b = 0; b < n_blocks; ++b) blocks_.push_back(n_blocks - 1 - b);
    for (int i = 0; i < shape.n_positions(); ++i)
      Store(i, keys.data() + i * shape.head_dim, values.data() + i * shape.head_dim);
  }

  void Store(int position, const float* key, const float* value) {
    const auto block =
        static_cast<std::size_t>(blocks_[static_cast<std::size_t>(position / kKvBlock)]);
    const int slot = position % kKvBlock;
    Scalar().store_k[static_cast<int>(shape_.k_type)](key, shape_.head_dim, slot,
                                                      k_.data() + block * k_stride_);
    Scalar().store_v[static_cast<int>(shape_.v_type)](value, shape_.head_dim, slot,
                                                      v_.data() + block * v_stride_);
  }

  // Rows [first, first + n) in one call. Returns [n, n_group * n_values].
  std::vector<float> Run(const Kernels& kernels, int first, int n) const {
    const int q_width = shape_.row_width(), width = shape_.result_width(), stride = width + 8;
    std::vector<float> out(static_cast<std::size_t>(n * stride), kSentinel), result;
    AlignedBuffer<float> scratch(AttentionScratchFloats(shape_.head_dim));
    AttentionArgs args{};
    args.q = queries.data() + first * q_width;
    args.q_stride = q_width;
    args.out = out.data();
    args.out_stride = stride;
    args.n_rows = n;
    args.n_group = shape_.n_group;
    args.head_dim = shape_.head_dim;
    args.scale = Scale();
    args.window = shape_.window;
    args.skipped_blocks = shape_.skipped_blocks;
    args.soft_cap = shape_.soft_cap;
    args.sinks = shape_.sinks ? sinks.data() : nullptr;
    args.row_len = shape_.row_len.data() + first;
    args.blocks = blocks_.data();
    args.k = k_.data();
    args.k_stride = k_stride_;
    args.v = v_.data();
    args.v_stride = v_stride_;
    args.k_type = shape_.k_type;
    args.v_type = shape_.v_type;
    args.values_in_keys = shape_.values_in_keys;
    if (args.values_in_keys > 0) args.v = nullptr, args.v_stride = 0;
    args.scratch = scratch.data();
    kernels.attention(args);
    for (int row = 0; row < n; ++row) {
      result.insert(result.end(), out.begin() + row * stride, out.begin() + row * stride + width);
      for (int i = width; i < stride; ++i)
        EXPECT_EQ(out[static_cast<std::size_t>(row * stride + i)], kSentinel);
    }
    return result;
  }
  std::vector<float> Run(const Kernels& kernels) const {
    return Run(kernels, 0, static_cast<int>(shape_.row_len.size()));
  }

  // Plain softmax attention in double, on the numbers before the cache rounded them.
  std::vector<double> Expected(int row, int g) const {
    const int head_dim = shape_.head_dim, n = shape_.row_len[static_cast<std::size_t>(row)];
    const float* q = queries.data() + row * shape_.row_width() + g * head_dim;
    const std::vector<float>& from = shape_.values_in_keys > 0 ? keys : values;
    std::vector<double> weight(static_cast<std::size_t>(n)),
        out(static_cast<std::size_t>(head_dim));
    double total = shape_.sinks ? std::exp(double{sinks[static_cast<std::size_t>(g)]}) : 0;
    for (int i = shape_.SeenFrom(row); i < n; ++i) {
      double dot = 0;
      for (int d = 0; d < head_dim; ++d)
        dot += double{q[d]} * double{keys[static_cast<std::size_t>(i * head_dim + d)]};
      double score = dot * double{Scale()};
      if (shape_.soft_cap > 0)
        score = double{shape_.soft_cap} * std::tanh(score / double{shape_.soft_cap});
      total += weight[static_cast<std::size_t>(i)] = std::exp(score);
    }
    for (int i = shape_.SeenFrom(row); i < n; ++i)
      for (int d = 0; d < head_dim; ++d)
        out[static_cast<std::size_t>(d)] +=
            weight[static_cast<std::size_t>(i)] / total *
            double{from[static_cast<std::size_t>(i * head_dim + d)]};
    return out;
  }

  // The cache of q4_0 in q8_0: 16 times the numbers, and a 16th of the scales.
  Problem InBytes() const {
    AttentionShape shape = shape_;
    shape.k_type = shape.v_type = KvType::kQ8_0;
    Problem bytes(shape);
    for (const std::int32_t block : blocks_) {
      const auto id = static_cast<std::size_t>(block);
      const int head_dim = shape.head_dim;
      const std::byte *const k = k_.data() + id * k_stride_, *const v = v_.data() + id * v_stride_;
      std::byte* const key_bytes = bytes.k_.data() + id * bytes.k_stride_;
      std::byte* const value_bytes = bytes.v_.data() + id * bytes.v_stride_;
      for (int j = 0; j < kKvBlock; ++j)
        for (int d = 0; d < head_dim; ++d) {
          key_bytes[(d / 4 * kKvBlock + j) * 4 + d % 4] =
              SixteenTimes(k[(d / 8 * kKvBlock + j) * 4 + d % 4], d % 8 >= 4);
          value_bytes[(j / 4 * head_dim + d) * 4 + j % 4] =
              SixteenTimes(v[(j / 8 * head_dim + d) * 4 + j % 4], j % 8 >= 4);
        }
      for (int i = 0; i < head_dim; ++i) {
        const std::size_t in = static_cast<std::size_t>(kKvBlock * head_dim / 2 + 2 * i),
                          out = static_cast<std::size_t>(kKvBlock * head_dim + 2 * i);
        CopySixteenth(k + in, key_bytes + out);
        CopySixteenth(v + in, value_bytes + out);
      }
    }
    return bytes;
  }

  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }

  std::vector<float> keys, values, queries, sinks;
  // From now on the number of this block of the sequence is one that memory does not have.
  void ForgetBlock(int index) { blocks_[static_cast<std::size_t>(index)] = 1 << 30; }

 private:
  static std::byte SixteenTimes(std::byte both, bool upper) {
    const int four =
        (upper ? std::to_integer<int>(both) >> 4 : std::to_integer<int>(both) & 15) - 8;
    return static_cast<std::byte>(16 * four);
  }
  static void CopySixteenth(const std::byte* from, std::byte* to) {
    std::uint16_t scale;
    std::memcpy(&scale, from, 2);
    scale = tensor::F32ToF16(tensor::F16ToF32(scale) / 16);
    std::memcpy(to, &scale, 2);
  }

  AttentionShape shape_;
  std::size_t k_stride_, v_stride_;
  AlignedBytes k_, v_;
  std::vector<std::int32_t> blocks_;
};

TEST(Attention, IsCloseToSoftmaxInDoubles) {
  const double tolerance[] = {2e-6, 2e-3, 2e-2, 2e-2, 2.5e-1};
  for (const KvType k_type : kAttendedTypes)
    for (const KvType v_type : kAttendedTypes)
      for (const int head_dim : {8, 64, 96}) {
        AttentionShape shape{k_type, v_type, head_dim, 2, {1, 31, 33, 100}};
        if (head_dim == 64) shape.window = 20, shape.soft_cap = 2, shape.sinks = true;
        if (!shape.Fits()) continue;
        const Problem problem(shape);
        const auto out = problem.Run(Scalar());
        const double allowed =
            tolerance[static_cast<int>(k_type)] + tolerance[static_cast<int>(v_type)];
        for (int row = 0; row < 4; ++row)
          for (int g = 0; g < 2; ++g) {
            const auto expected = problem.Expected(row, g);
            for (int d = 0; d < head_dim; ++d) {
              const float actual =
                  out[static_cast<std::size_t>(row * shape.row_width() + g * head_dim + d)];
              ASSERT_NEAR(double{actual}, expected[static_cast<std::size_t>(d)], allowed)
                  << shape.Text() << " row " << row;
            }
          }
      }
}

std::vector<int> LengthsFrom(int first, int n_rows) {
  std::vector<int> lengths(static_cast<std::size_t>(n_rows));
  std::iota(lengths.begin(), lengths.end(), first);
  return lengths;
}

// All results are finite, and each table gives the bits of the scalar one.
void ExpectTheBitsOfTheScalarTable(const AttentionShape& shape) {
  const Problem problem(shape);
  const auto expected = problem.Run(Scalar());
  for (const float x : expected) ASSERT_TRUE(std::isfinite(x)) << shape.Text();
  for (const Kernels* kernels : AttentionTables())
    EXPECT_TRUE(SameBits(problem.Run(*kernels), expected)) << kernels->isa << " " << shape.Text();
}

TEST(Attention, HasTheBitsOfTheScalarTableForAllTypesAndHeads) {
  for (const int head_dim : {8, 16, 48, 64, 80, 128, 256})
    for (const KvType k_type : kAttendedTypes)
      for (const KvType v_type : kAttendedTypes) {
        const AttentionShape shape{k_type, v_type, head_dim, 3, {30, 33, 34, 65}};
        if (shape.Fits()) ExpectTheBitsOfTheScalarTable(shape);
      }
}

TEST(Attention, OverFoursIsThatOverBytesSixteenTimesAsLarge) {
  for (const int head_dim : {32, 64, 96, 128}) {
    AttentionShape shape{KvType::kQ4_0, KvType::kQ4_0, head_dim, 3, {1, 30, 33, 34, 65}};
    for (const int window : {0, 20}) {
      shape.window = window;
      const Problem problem(shape), bytes = problem.InBytes();
      const auto expected = bytes.Run(Scalar());
      for (const float x : expected) ASSERT_TRUE(std::isfinite(x)) << shape.Text();
      EXPECT_TRUE(SameBits(problem.Run(Scalar()), expected)) << shape.Text();
    }
  }
}

TEST(Attention, HasTheBitsOfTheScalarTableForAllGroupsAndNumbersOfRows) {
  for (int n_group = 1; n_group <= 8; ++n_group)
    for (int n_rows = 1; n_rows <= 9; ++n_rows)
      for (const KvType type : {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0})
        ExpectTheBitsOfTheScalarTable({type, type, 32, n_group, LengthsFrom(29, n_rows)});
}

TEST(Attention, ComputesRoughExponentialsAsItsContractSays) {
  EXPECT_EQ(scalar::RoughExp(0.0f), 1.0f);
  for (float x = 0; x > -86; x -= 0.00371f) {
    const double expected = std::exp(double{x});
    ASSERT_NEAR(double{scalar::RoughExp(x)}, expected, 1.1e-4 * expected) << x;
  }
  for (const float x : {-86.5f, -1e30f, -kInf})
    EXPECT_EQ(scalar::RoughExp(x), scalar::RoughExp(-86.0f));
  EXPECT_TRUE(std::isnan(scalar::RoughExp(kNan)));
}

// Tiles that are full, that are not, and that end in a few queries.
TEST(Attention, HasTheBitsOfTheScalarTableForManyQueriesAndBlocks) {
  for (const int n_group : {1, 3, 4, 5})
    for (const int n_rows : {4, 8, 11, 19})
      for (const KvType type : {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0})
        ExpectTheBitsOfTheScalarTable({type, type, 64, n_group, LengthsFrom(157, n_rows)});
}

void ExpectTheSameAlone(const AttentionShape& shape) {
  const Problem problem(shape);
  const auto width = static_cast<std::size_t>(shape.result_width());
  for (const Isa isa : AvailableIsas()) {
    const auto together = problem.Run(KernelsFor(isa));
    for (int row = 0; row < static_cast<int>(shape.row_len.size()); ++row) {
      const auto alone = problem.Run(KernelsFor(isa), row, 1);
      const auto among = std::span(together).subspan(width * static_cast<std::size_t>(row), width);
      EXPECT_TRUE(SameBits(alone, among)) << Name(isa) << " row " << row << ", " << shape.Text();
    }
  }
}

TEST(Attention, GivesARowTheSameBitsAloneAndAmongOthers) {
  const std::vector row_len = {1, 2, 31, 32, 33, 63, 64, 64, 65, 96, 97, 200};
  ExpectTheSameAlone({KvType::kF16, KvType::kBF16, 48, 3, row_len});
  ExpectTheSameAlone({KvType::kQ8_0, KvType::kQ8_0, 64, 3, row_len});
  ExpectTheSameAlone({KvType::kQ8_0, KvType::kF16, 32, 4, row_len});
  ExpectTheSameAlone({KvType::kQ4_0, KvType::kQ4_0, 64, 3, row_len});
  ExpectTheSameAlone({KvType::kQ4_0, KvType::kQ8_0, 96, 2, row_len});
}

TEST(Attention, NeverLooksAtPositionsARowDoesNotSee) {
  for (const KvType type : kAttendedTypes) {
    const AttentionShape shape{type, type, 64, 2, {7, 8, 31, 32, 40}};
    Problem problem(shape);
    const std::vector<float> nan(64, kNan), huge(64, kInf);
    for (const Isa isa : AvailableIsas()) {
      const auto before = problem.Run(KernelsFor(isa), 0, 3);
      Problem spoilt(shape);
      for (int i = 31; i < 40; ++i) spoilt.Store(i, huge.data(), nan.data());
      EXPECT_TRUE(SameBits(spoilt.Run(KernelsFor(isa), 0, 3), before)) << Name(isa);
      const auto width = static_cast<std::size_t>(shape.row_width());
      const auto all = spoilt.Run(KernelsFor(isa));
      EXPECT_TRUE(SameBits(std::span(all).first(3 * width), before)) << Name(isa);
      EXPECT_FALSE(SameBits(all[4 * width], problem.Run(KernelsFor(isa), 4, 1)[0])) << Name(isa);
    }
  }
}

TEST(Attention, KeepsItsBitsWhenWeightsUnderflow) {
  for (const float deviation : {20.0f, 300.0f})
    ExpectTheBitsOfTheScalarTable({KvType::kF16, KvType::kF16, 64, 4, {160, 161}, deviation});
}

// All weights and values of a block are +-127, and so are queries and keys: no sum of a few products
// may leave the width that an instruction set has for it.
TEST(Attention, KeepsItsBitsWithTheLargestIntegers) {
  for (const auto& [type, deviation] : {std::pair(KvType::kQ8_0, 1e-3f), {KvType::kQ4_0, 0.1f}})
    for (const float sign : {1.0f, -1.0f}) {
      const AttentionShape shape{type, type, 64, 4, {96, 97, 98, 99}};
      Problem problem(shape);
      const std::vector<float> largest(64, 2 * sign);
      for (float& q : problem.queries) q = 1;
      for (int i = 0; i < shape.n_positions(); ++i)
        problem.Store(i, largest.data(), largest.data());
      const auto expected = problem.Run(Scalar());
      for (const float x : expected) ASSERT_NEAR(x, largest[0], deviation);
      for (const Kernels* kernels : AttentionTables())
        EXPECT_TRUE(SameBits(problem.Run(*kernels), expected)) << kernels->isa;
    }
}

TEST(Attention, HasTheBitsOfTheScalarTableForAllWindows) {
  for (const int window : {1, 5, 31, 32, 33, 64, 70, 1000})
    for (const int n_group : {1, 3, 8})
      for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kQ8_0, KvType::kQ4_0})
        for (const auto& row_len : {std::vector{200}, std::vector{63, 64, 65, 66, 67, 68, 69, 70},
                                    std::vector{1, 2, 31, 96, 97, 130, 200, 201, 202}}) {
          AttentionShape shape{type, type, 32, n_group, row_len};
          shape.window = window, shape.sinks = window % 2 == 1;
          shape.soft_cap = window == 33 ? 1.5f : 0;
          ExpectTheBitsOfTheScalarTable(shape);
        }
}

TEST(Attention, WithAWindowGivesARowTheSameBitsAloneAndAmongOthers) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0}) {
    AttentionShape shape{type, type, tensor::HasScales(type) ? 64 : 48, 3, LengthsFrom(90, 40)};
    shape.window = 40;
    ExpectTheSameAlone(shape);
  }
}

TEST(Attention, NeverLooksAtWhatLiesBeforeTheWindow) {
  for (const KvType type : kAttendedTypes) {
    AttentionShape shape{type, type, 64, 2, {100, 101, 110}};
    shape.window = 20;
    const std::vector<float> nan(64, kNan);
    const Problem problem(shape);
    for (const Isa isa : AvailableIsas()) {
      Problem spoilt(shape);
      for (int i = 0; i < 80; ++i) spoilt.Store(i, nan.data(), nan.data());
      spoilt.ForgetBlock(0);
      spoilt.ForgetBlock(1);
      EXPECT_TRUE(SameBits(spoilt.Run(KernelsFor(isa)), problem.Run(KernelsFor(isa)))) << Name(isa);
    }
  }
}

// As if the other blocks were all, and these followed each other.
void ExpectTheSameWithoutSkippedBlocks(const AttentionShape& shape) {
  const int skipped = shape.skipped_blocks;
  AttentionShape others = shape;
  others.skipped_blocks = 0;
  for (int& length : others.row_len) length -= skipped * kKvBlock;
  Problem problem(shape), same(others);
  for (int i = 0; i < others.n_positions(); ++i) {
    const int from = (i < kKvBlock ? i : i + skipped * kKvBlock) * shape.head_dim;
    same.Store(i, problem.keys.data() + from, problem.values.data() + from);
  }
  for (int block = 1; block <= skipped; ++block) problem.ForgetBlock(block);
  const auto expected = same.Run(Scalar());
  for (const float x : expected) ASSERT_TRUE(std::isfinite(x)) << shape.Text();
  EXPECT_TRUE(SameBits(problem.Run(Scalar()), expected)) << shape.Text();
  for (const Kernels* kernels : AttentionTables())
    EXPECT_TRUE(SameBits(problem.Run(*kernels), expected)) << kernels->isa << " " << shape.Text();
}

TEST(Attention, SeesTheFirstBlockAndThoseBehindTheSkippedOnes) {
  for (const int skipped : {1, 2, 5})
    for (const KvType type : kAttendedTypes)
      for (const int n_group : {1, 4}) {
        const int least = (1 + skipped) * kKvBlock;
        AttentionShape shape{type, type, 64, n_group, {}};
        for (const int length : {1, 31, 32, 33, 64, 100}) shape.row_len.push_back(least + length);
        shape.skipped_blocks = skipped;
        ExpectTheSameWithoutSkippedBlocks(shape);
        shape.sinks = true, shape.soft_cap = 1.5f;
        ExpectTheSameWithoutSkippedBlocks(shape);
        shape.sinks = false, shape.soft_cap = 0, shape.values_in_keys = 32;
        ExpectTheSameWithoutSkippedBlocks(shape);
      }
}

constexpr std::pair<int, int> kLatentShapes[] = {
    {8, 8}, {24, 16}, {96, 64}, {128, 128}, {576, 512}};

// Values that lie apart and hold the same numbers give the same bits, but where those are integers.
TEST(Attention, WithValuesInKeysHasTheBitsOfValuesApart) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16})
    for (const auto& [head_dim, n_values] : kLatentShapes) {
      AttentionShape shape{type, type, head_dim, 3, {30, 33, 34, 65}};
      shape.values_in_keys = n_values;
      if (!shape.Fits()) continue;
      const Problem problem(shape);
      AttentionShape apart = shape;
      apart.values_in_keys = 0;
      Problem same(apart);
      for (int i = 0; i < shape.n_positions(); ++i)
        same.Store(i, same.keys.data() + i * head_dim, same.keys.data() + i * head_dim);
      const auto whole = same.Run(Scalar()), out = problem.Run(Scalar());
      for (std::size_t query = 0; query < 12; ++query) {
        const auto n = static_cast<std::size_t>(n_values);
        EXPECT_TRUE(
            SameBits(std::span(out).subspan(query * n, n),
                     std::span(whole).subspan(query * static_cast<std::size_t>(head_dim), n)))
            << shape.Text();
      }
    }
}

TEST(Attention, WithValuesInIntegerKeysIsCloseToSoftmaxInDoubles) {
  for (const auto& [head_dim, n_values] : {std::pair(96, 64), std::pair(576, 512)})
    for (const KvType type : {KvType::kQ8_0, KvType::kQ4_0}) {
      AttentionShape shape{type, type, head_dim, 3, {1, 33, 100}};
      const double tolerance = type == KvType::kQ8_0 ? 4e-2 : 4e-1;
      shape.values_in_keys = n_values;
      const Problem problem(shape);
      const auto out = problem.Run(Scalar());
      for (int row = 0; row < 3; ++row)
        for (int g = 0; g < 3; ++g) {
          const auto expected = problem.Expected(row, g);
          for (int d = 0; d < n_values; ++d)
            ASSERT_NEAR(
                double{
                    out[static_cast<std::size_t>(row * shape.result_width() + g * n_values + d)]},
                expected[static_cast<std::size_t>(d)], tolerance)
                << shape.Text() << " row " << row;
        }
    }
}

TEST(Attention, WithValuesInKeysHasTheBitsOfTheScalarTable) {
  for (const KvType type : kAttendedTypes)
    for (const auto& [head_dim, n_values] : kLatentShapes)
      for (const int n_group : {1, 2, 7, 16, 20})
        for (const auto& row_len :
             {std::vector{1}, std::vector{200}, std::vector{30, 33, 34, 65}}) {
          AttentionShape shape{type, type, head_dim, n_group, row_len};
          shape.values_in_keys = n_values;
          shape.sinks = n_group == 2, shape.soft_cap = n_group == 2 ? 1.5f : 0;
          if (shape.Fits()) ExpectTheBitsOfTheScalarTable(shape);
        }
}

TEST(Attention, WithValuesInKeysGivesARowTheSameBitsAloneAndAmongOthers) {
  for (const KvType type : {KvType::kF16, KvType::kQ8_0, KvType::kQ4_0}) {
    AttentionShape shape{type, type, 96, 3, {1, 2, 31, 32, 33, 63, 64, 64, 65, 96, 97, 200}};
    shape.values_in_keys = 64;
    ExpectTheSameAlone(shape);
  }
}

TEST(Attention, WithValuesInKeysNeverLooksAtPositionsARowDoesNotSee) {
  for (const KvType type : kAttendedTypes) {
    AttentionShape shape{type, type, 96, 2, {7, 8, 31, 32, 40}};
    shape.values_in_keys = 64;
    const Problem problem(shape);
    const std::vector<float> nan(96, kNan);
    Problem spoilt(shape);
    for (int i = 31; i < 40; ++i) spoilt.Store(i, nan.data(), nan.data());
    const auto seen = 3 * static_cast<std::size_t>(shape.result_width());
    for (const Isa isa : AvailableIsas()) {
      const auto before = problem.Run(KernelsFor(isa), 0, 3), all = spoilt.Run(KernelsFor(isa));
      EXPECT_TRUE(SameBits(std::span(all).first(seen), before)) << Name(isa);
      EXPECT_TRUE(std::isnan(all.back())) << Name(isa);
    }
  }
}

TEST(Attention, OfOnePositionIsItsValue) {
  for (const Isa isa : AvailableIsas()) {
    const Problem problem({KvType::kF32, KvType::kF32, 16, 1, {1}});
    const auto out = problem.Run(KernelsFor(isa));
    EXPECT_TRUE(SameBits(out, problem.values)) << Name(isa);
  }
}

}  // namespace
}  // namespace foretoken::kernels
