// SPDX-License-Identifier: Apache-2.0
// kernels/dispatch.h: chooses the table of kernels for this processor, once.
//
// An instruction set has the functions that it does better than the set it extends; its table holds
// those, and the rest are those of the set it extends. So every table is complete, and a function
// that no vector folder has is the scalar one.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "kernels/kernels.h"

namespace foretoken::kernels {

// From the weakest to the strongest.
enum class Isa { kScalar, kNeon, kAvx2, kAvxVnni, kAvx512, kAmx };
inline constexpr Isa kBestIsa = Isa::kAmx;  // as a cap: no cap

// The sets that this processor and operating system can run, weakest first. kScalar is always among
// them. Asks Linux once for the use of AMX's registers. Only threads that start later may use them,
// so call it before the threads of an engine start.
std::vector<Isa> AvailableIsas();
std::string_view Name(Isa isa);
// "scalar", "neon", "avx2", "avxvnni", "avx512", "amx". Errors: kInvalidArgument naming the
// choices.
[[nodiscard]] Result<Isa> ParseIsa(std::string_view name);

// `base` with every function that `better` has in its place, and with its name if it has one.
Kernels Overlay(const Kernels& base, const Kernels& better);

// The instruction set that the product of `type` in the table of `isa` comes from: `isa`, or one
// that it extends where the set has no such product of its own. REQUIRES: isa is available.
Isa ProductIsa(Isa isa, tensor::TileType type);

// The table of the best available set that is no better than cap. "neon" on x86 leaves scalar, and
// any set of x86 on ARM leaves the best one.
const Kernels& KernelsFor(Isa cap);
// KernelsFor the best set, capped by the environment variable FORETOKEN_ISA where it is set. Errors: an unknown
// name in it.
[[nodiscard]] Result<const Kernels*> KernelsFromEnvironment();
// KernelsFor the set of this name; where the name is empty, KernelsFromEnvironment. Errors: an unknown
// name.
[[nodiscard]] Result<const Kernels*> KernelsByName(std::string_view cap);

}  // namespace foretoken::kernels
