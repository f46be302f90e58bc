// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstdlib>
#include <string>

namespace foretoken::kernels {

extern const Kernels kScalar;
#if defined(__x86_64__)
extern const Kernels kAvx2;
extern const Kernels kAvx512;
#endif

#if defined(__x86_64__)
namespace {

// Not every compiler knows "f16c" by name: CPUID leaf 1, ECX bit 29.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
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
  if (avx512) available.push_back(Isa::kAvx512);
#endif
  return available;
}

std::string_view Name(Isa isa) {
  constexpr std::array<std::string_view, 3> kNames = {"scalar", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(isa)];
}

Result<Isa> ParseIsa(std::string_view name) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (name == Name(isa)) return isa;
  if (name == "amx") return Isa::kAvx512;
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "instruction set: '{}' is unknown; set FORETOKEN_ISA to scalar, avx2, avx512 or amx",
          name));
}

const Kernels& KernelsFor(Isa cap) {
  Isa best = Isa::kScalar;
  for (const Isa isa : AvailableIsas())
    if (isa <= cap) best = isa;
#if defined(__x86_64__)
  if (best == Isa::kAvx512) return kAvx512;
  if (best == Isa::kAvx2) return kAvx2;
#endif
  return kScalar;
}

Result<const Kernels*> KernelsFromEnvironment() {
  const char* name = std::getenv("FORETOKEN_ISA");
  if (name == nullptr || *name == '\0') return &KernelsFor(Isa::kAvx512);
  FORETOKEN_TRY(const Isa cap, ParseIsa(name));
  return &KernelsFor(cap);
}

}  // namespace foretoken::kernels
