// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__x86_64__)
#include <cpuid.h>
#if !defined(_WIN32)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "kernels/parts.h"

namespace foretoken::kernels {

namespace {

#if defined(__x86_64__)

// CPUID leaf 1, ECX bit 29, because not every compiler knows "f16c" by name.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
}

// CPUID leaf 7, subleaf 1, EAX bit 4, because not every compiler knows "avxvnni" by name.
bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1) != 0;
}

// __builtin_cpu_supports also asks the operating system (XCR0) whether the registers are saved.
bool RunsAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && HasF16c();
}
bool RunsAvxVnni() {
  return RunsAvx2() && HasAvxVnni();
}
bool RunsAvx512() {
  return RunsAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// The family of a processor of AMD with AVX-512, else 0.
unsigned AmdFamily() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_AMD_ebx) return 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !RunsAvx512()) return 0;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
}
// Family 25 with AVX-512 is Zen 4 (and Zen 3 without it).
bool IsZen4() {
  return AmdFamily() == 25;
}
bool IsZen5() {
  return AmdFamily() == 26;
}

#if !defined(_WIN32)

// CPUID leaf 7, EDX bits 24 (tiles) and 25 (int8). Linux gives the registers to a process that asks
// for them.
bool HasAmx() {
  constexpr long kRequestPermission = 0x1023,
                 kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 24 & 3) == 3 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
bool RunsAmx() {
  static const bool amx = RunsAvx512() && HasAmx();
  return amx;
}

#endif

#elif defined(__aarch64__)

bool RunsNeon() {
  constexpr unsigned long kNeeded = HWCAP_ASIMD | HWCAP_ASIMDDP;  // ASIMDDP: dot products
  return (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
}

#endif

bool RunsHere() {
  return true;
}
[[maybe_unused]] bool RunsElsewhere() {
  return false;
}

// One instruction set: its name, the set that it extends, whether this machine runs it, and its
// functions, in parts.
struct InstructionSet {
  Isa isa;
  const char* name;
  Isa extends;
  bool (*runs)();
  std::array<const Kernels*, 2> parts;
  // Functions that replace those where `here` returns true.
  struct Other {
    bool (*here)() = nullptr;
    const Kernels* part = nullptr;
  };
  std::array<Other, 2> others = {};
};

// In the order of Isa. A set comes after the one that it extends. A set for other processors has
// only its name here.
constexpr InstructionSet kSets[] = {
    {Isa::kScalar, "scalar", Isa::kScalar, RunsHere, {&scalar::kFunctions, &scalar::kMatmul}},
#if defined(__x86_64__)
    {Isa::kNeon, "neon", Isa::kScalar, RunsElsewhere, {}},
    {Isa::kAvx2, "avx2", Isa::kScalar, RunsAvx2, {&avx2::kFunctions, &avx2::kMatmul}},
    {Isa::kAvxVnni, "avxvnni", Isa::kAvx2, RunsAvxVnni, {&avxvnni::kMatmul, &avxvnni::kAttention}},
    {Isa::kAvx512,
     "avx512",
     Isa::kAvx2,
     RunsAvx512,
     {&avx512::kFunctions, &avx512::kMatmul},
     {{{IsZen4, &avx512::kHalvedAttention}, {IsZen5, &avx512::kStreamedAttention}}}},
#if defined(_WIN32)
    {Isa::kAmx, "amx", Isa::kAvx512, RunsElsewhere, {}},
#else
    {Isa::kAmx, "amx", Isa::kAvx512, RunsAmx, {&amx::kMatmul}},
#endif
#else
#if defined(__aarch64__)
    {Isa::kNeon, "neon", Isa::kScalar, RunsNeon, {&neon::kFunctions, &neon::kMatmul}},
#else
    {Isa::kNeon, "neon", Isa::kScalar, RunsElsewhere, {}},
#endif
    {Isa::kAvx2, "avx2", Isa::kScalar, RunsElsewhere, {}},
    {Isa::kAvxVnni, "avxvnni", Isa::kAvx2, RunsElsewhere, {}},
    {Isa::kAvx512, "avx512", Isa::kAvx2, RunsElsewhere, {}},
    {Isa::kAmx, "amx", Isa::kAvx512, RunsElsewhere, {}},
#endif
};
constexpr std::size_t kNumSets = std::size(kSets);

const InstructionSet& SetOf(Isa isa) {
  return kSets[static_cast<std::size_t>(isa)];
}

// The tables are made at first use. Their parts are constants, so it does not matter which file is
// initialised first.
const std::array<Kernels, kNumSets>& Tables() {
  static const std::array<Kernels, kNumSets> tables = [] {
    std::array<Kernels, kNumSets> made = {};
    for (const InstructionSet& set : kSets) {
      Kernels& table = made[static_cast<std::size_t>(set.isa)];
      table = made[static_cast<std::size_t>(set.extends)];
      table.isa = set.name;
      for (const Kernels* part : set.parts)
        if (part != nullptr) table = Overlay(table, *part);
      for (const InstructionSet::Other& other : set.others)
        if (other.part != nullptr && other.here()) table = Overlay(table, *other.part);
    }
    return made;
  }();
  return tables;
}

}  // namespace

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> available;
  for (const InstructionSet& set : kSets)
    if (set.runs()) available.push_back(set.isa);
  return available;
}

std::string_view Name(Isa isa) {
  return SetOf(isa).name;
}

Result<Isa> ParseIsa(std::string_view name) {
  std::vector<std::string_view> names;
  for (const InstructionSet& set : kSets) {
    if (name == set.name) return set.isa;
    names.push_back(set.name);
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("instruction set: '{}' is unknown; set FORETOKEN_ISA to one of {}", name,
                          fmt::join(names, ", ")));
}

Kernels Overlay(const Kernels& base, const Kernels& better) {
  // A table is its name and pointers to functions, no more.
  constexpr std::size_t kEntries = sizeof(Kernels) / sizeof(void*);
  static_assert(std::is_trivially_copyable_v<Kernels> && sizeof(Kernels) % sizeof(void*) == 0);
  std::array<const void*, kEntries> entries, others;
  std::memcpy(entries.data(), &base, sizeof base);
  std::memcpy(others.data(), &better, sizeof better);
  for (std::size_t i = 0; i < kEntries; ++i)
    if (others[i] != nullptr) entries[i] = others[i];
  Kernels table;
  std::memcpy(&table, entries.data(), sizeof table);
  return table;
}

Isa ProductIsa(Isa isa, tensor::TileType type) {
  while (isa != Isa::kScalar) {
    const InstructionSet& set = SetOf(isa);
    for (const Kernels* part : set.parts)
      if (part != nullptr && part->matmul[static_cast<int>(type)] != nullptr) return isa;
    isa = set.extends;
  }
  return isa;
}

const Kernels& KernelsFor(Isa cap) {
  Isa best = Isa::kScalar;
  for (const Isa isa : AvailableIsas())
    if (isa <= cap) best = isa;
  return Tables()[static_cast<std::size_t>(best)];
}

Result<const Kernels*> KernelsFromEnvironment() {
  const char* name = std::getenv("FORETOKEN_ISA");
  if (name == nullptr || *name == '\0') return &KernelsFor(kBestIsa);
  return KernelsByName(name);
}

Result<const Kernels*> KernelsByName(std::string_view cap) {
  if (cap.empty()) return KernelsFromEnvironment();
  FORETOKEN_TRY(const Isa isa, ParseIsa(cap));
  return &KernelsFor(isa);
}

}  // namespace foretoken::kernels
