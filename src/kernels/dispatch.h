// SPDX-License-Identifier: Apache-2.0
// kernels/dispatch.h: chooses the table of kernels for this processor, once.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "kernels/kernels.h"

namespace foretoken::kernels {

enum class Isa { kScalar, kAvx2, kAvx512 };

// What this processor and operating system can run, weakest first; always contains kScalar.
std::vector<Isa> AvailableIsas();
std::string_view Name(Isa isa);
// "scalar", "avx2", "avx512"; "amx" is accepted as a cap (and caps nothing). Errors:
// kInvalidArgument naming the choices.
[[nodiscard]] Result<Isa> ParseIsa(std::string_view name);

// The table of the best available set that is no better than cap.
const Kernels& KernelsFor(Isa cap);
// The same, capped by the environment variable FORETOKEN_ISA where it is set. Errors: an unknown
// name in it.
[[nodiscard]] Result<const Kernels*> KernelsFromEnvironment();

}  // namespace foretoken::kernels
