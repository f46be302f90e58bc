// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace foretoken::kernels {
namespace {

class ScopedIsaVariable {
 public:
  explicit ScopedIsaVariable(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old, had_ = true;
    value != nullptr ? setenv(kName, value, 1) : unsetenv(kName);
  }
  ~ScopedIsaVariable() { had_ ? setenv(kName, old_.c_str(), 1) : unsetenv(kName); }

 private:
  static constexpr const char* kName = "FORETOKEN_ISA";
  std::string old_;
  bool had_ = false;
};

TEST(Dispatch, ListsScalarFirstAndTheOthersInOrderOfStrength) {
  const std::vector<Isa> isas = AvailableIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  for (std::size_t i = 1; i < isas.size(); ++i) EXPECT_LT(isas[i - 1], isas[i]);
}

TEST(Dispatch, ReadsBackTheNamesItWrites) {
  for (const Isa isa :
       {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}) {
    const Result<Isa> parsed = ParseIsa(Name(isa));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(Dispatch, RefusesAnUnknownNameAndSaysWhatItTakes) {
  const Result<Isa> parsed = ParseIsa("sse9");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  for (const char* word : {"sse9", "scalar", "neon", "avx2", "avxvnni", "avx512", "amx"})
    EXPECT_NE(parsed.error().message.find(word), std::string::npos) << word;
}

TEST(Dispatch, HonoursTheCap) {
  EXPECT_STREQ(KernelsFor(Isa::kScalar).isa, "scalar");
  for (const Isa isa : AvailableIsas()) EXPECT_EQ(KernelsFor(isa).isa, Name(isa));
  EXPECT_EQ(KernelsFor(kBestIsa).isa, Name(AvailableIsas().back()));
}

TEST(Dispatch, HonoursTheEnvironment) {
  for (const Isa isa : AvailableIsas()) {
    const ScopedIsaVariable variable(std::string(Name(isa)).c_str());
    const Result<const Kernels*> kernels = KernelsFromEnvironment();
    ASSERT_TRUE(kernels.has_value());
    EXPECT_EQ((*kernels)->isa, Name(isa));
  }
}

TEST(Dispatch, TakesTheBestSetWithoutTheVariable) {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const ScopedIsaVariable variable(value);
    const Result<const Kernels*> kernels = KernelsFromEnvironment();
    ASSERT_TRUE(kernels.has_value());
    EXPECT_EQ((*kernels)->isa, Name(AvailableIsas().back()));
  }
}

TEST(Dispatch, RefusesAnUnknownNameInTheEnvironment) {
  const ScopedIsaVariable variable("avx1024");
  const Result<const Kernels*> kernels = KernelsFromEnvironment();
  ASSERT_FALSE(kernels.has_value());
  EXPECT_EQ(kernels.error().code, ErrorCode::kInvalidArgument);
}

TEST(Dispatch, OverlaysTheFunctionsThatTheBetterTableHas) {
  const Kernels& base = KernelsFor(Isa::kScalar);
  Kernels better = {};
  better.isa = "better";
  better.matmul[2] = base.matmul[0];
  better.collect_at_least = [](const float*, int, float, std::int32_t*, int) { return 7; };
  const Kernels table = Overlay(base, better);
  EXPECT_STREQ(table.isa, "better");
  EXPECT_EQ(table.matmul[2], base.matmul[0]);
  EXPECT_EQ(table.collect_at_least, better.collect_at_least);
  EXPECT_EQ(table.matmul[1], base.matmul[1]);
  EXPECT_EQ(table.matmul[3], base.matmul[3]);
  EXPECT_EQ(table.block_max, base.block_max);
}

TEST(Dispatch, AProductIsThatOfTheSetItIsSaidToComeFrom) {
  for (const Isa isa : AvailableIsas())
    for (int type = 0; type < tensor::kTileTypes; ++type) {
      const Isa source = ProductIsa(isa, static_cast<tensor::TileType>(type));
      EXPECT_LE(source, isa);
      EXPECT_EQ(KernelsFor(isa).matmul[type], KernelsFor(source).matmul[type]) << Name(isa);
    }
}

TEST(Dispatch, ASetThatExtendsAnotherFallsBackToIt) {
  const std::vector<Isa> isas = AvailableIsas();
  const auto has = [&](Isa isa) { return std::find(isas.begin(), isas.end(), isa) != isas.end(); };
  if (!has(Isa::kAmx)) GTEST_SKIP() << "no AMX here";
  // AMX has only products of some quantised types.
  EXPECT_EQ(ProductIsa(Isa::kAmx, tensor::TileType::kQ8_0), Isa::kAmx);
  EXPECT_EQ(ProductIsa(Isa::kAmx, tensor::TileType::kQ6_K), Isa::kAvx512);
  EXPECT_EQ(KernelsFor(Isa::kAmx).rms_norm, KernelsFor(Isa::kAvx512).rms_norm);
  EXPECT_NE(KernelsFor(Isa::kAmx).rms_norm, KernelsFor(Isa::kAvx2).rms_norm);
}

TEST(Dispatch, LeavesNoGapInATable) {
  for (const Isa isa : AvailableIsas()) {
    const Kernels& kernels = KernelsFor(isa);
    // A table is a name and function pointers.
    static_assert(sizeof(Kernels) % sizeof(void*) == 0);
    const void* entries[sizeof(Kernels) / sizeof(void*)];
    std::memcpy(entries, &kernels, sizeof(kernels));
    for (const void* entry : entries) EXPECT_NE(entry, nullptr) << Name(isa);
  }
}

}  // namespace
}  // namespace foretoken::kernels
