// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace foretoken::kernels {

extern const Kernels kScalar;
#if defined(__x86_64__)
extern const Kernels kAvx2;
extern const Kernels kAvxVnni;  // products of quantised weights only
extern const Kernels kAvx512;
namespace amx {
extern const Kernels kTable;  // likewise
}
#elif defined(__aarch64__)
extern const Kernels kNeon;
#endif

#if defined(__x86_64__)
namespace {

// Not every compiler knows "f16c" by name: CPUID leaf 1, ECX bit 29.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
}

// Nor "avxvnni": leaf 7, subleaf 1, EAX bit 4.
bool HasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1) != 0;
}

// Leaf 7, EDX bits 24 (tiles) and 25 (int8); and Linux gives the registers to who asks for them.
bool HasAmx() {
  constexpr long kRequestPermission = 0x1023,
                 kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 24 & 3) == 3 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Made at first use: the tables it is made of are constants, whichever file is initialised first.
const Kernels& AvxVnniTable() {
  static const Kernels table = Overlay(kAvx2, kAvxVnni);
  return table;
}
const Kernels& AmxTable() {
  static const Kernels table = Overlay(kAvx512, amx::kTable);
  return table;
}

}  // namespace
#endif

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> available = {Isa::kScalar};
#if defined(__x86_64__)
  // __builtin_cpu_supports also asks the operating system (XCR0) whether the registers are saved.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2") && HasF16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (avx2) available.push_back(Isa::kAvx2);
  if (avx2 && HasAvxVnni()) available.push_back(Isa::kAvxVnni);
  if (avx512) available.push_back(Isa::kAvx512);
  static const bool amx = HasAmx();
  if (avx512 && amx) available.push_back(Isa::kAmx);
#elif defined(__aarch64__)
  constexpr unsigned long kNeeded = HWCAP_ASIMD | HWCAP_ASIMDDP;  // the latter: dot products
  if ((getauxval(AT_HWCAP) & kNeeded) == kNeeded) available.push_back(Isa::kNeon);
#endif
  return available;
}

std::string_view Name(Isa isa) {
  constexpr std::array<std::string_view, 6> kNames = {"scalar",  "neon",   "avx2",
                                                      "avxvnni", "avx512", "amx"};
  return kNames[static_cast<std::size_t>(isa)];
}

Result<Isa> ParseIsa(std::string_view name) {
  for (const Isa isa :
       {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx})
    if (name == Name(isa)) return isa;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("instruction set: '{}' is unknown; set FORETOKEN_ISA to scalar, neon, "
                          "avx2, avxvnni, avx512 or amx",
                          name));
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

const Kernels& KernelsFor(Isa cap) {
  Isa best = Isa::kScalar;
  for (const Isa isa : AvailableIsas())
    if (isa <= cap) best = isa;
#if defined(__x86_64__)
  if (best == Isa::kAmx) return AmxTable();
  if (best == Isa::kAvx512) return kAvx512;
  if (best == Isa::kAvxVnni) return AvxVnniTable();
  if (best == Isa::kAvx2) return kAvx2;
#elif defined(__aarch64__)
  if (best == Isa::kNeon) return kNeon;
#endif
  return kScalar;
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
