// SPDX-License-Identifier: Apache-2.0
// kernels/dispatch.h: chooses the table of kernels for this processor, once.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "kernels/kernels.h"

namespace foretoken::kernels {

enum class Isa { kScalar, kNeon, kAvx2, kAvxVnni, kAvx512, kAmx };
inline constexpr Isa kBestIsa = Isa::kAmx;  // as a cap: none

// What this processor and operating system can run, weakest first; always contains kScalar. Asks
// Linux for the use of AMX's registers, once: threads that start later have it, so call it before.
std::vector<Isa> AvailableIsas();
std::string_view Name(Isa isa);
// "scalar", "neon", "avx2", "avxvnni", "avx512", "amx". Errors: kInvalidArgument naming the
// choices.
[[nodiscard]] Result<Isa> ParseIsa(std::string_view name);

// `base` with the name of `better` and with every function that `better` has.
Kernels Overlay(const Kernels& base, const Kernels& better);

// The table of the best available set that is no better than cap: "neon" on x86 leaves scalar, and
// caps nothing on ARM.
const Kernels& KernelsFor(Isa cap);
// The same, capped by the environment variable FORETOKEN_ISA where it is set. Errors: an unknown
// name in it.
[[nodiscard]] Result<const Kernels*> KernelsFromEnvironment();
// Capped by a set's name; where it is empty, by the environment. Errors: an unknown name.
[[nodiscard]] Result<const Kernels*> KernelsByName(std::string_view cap);

}  // namespace foretoken::kernels
