// SPDX-License-Identifier: Apache-2.0
// kernels/parts.h: the parts that the tables of kernels are put together from. Each is a Kernels
// with null pointers for what it lacks; dispatch.cpp lays them over each other.
#pragma once

#include "kernels/kernels.h"

namespace foretoken::kernels {

namespace scalar {
extern const Kernels kFunctions, kMatmul;
}
namespace avx2 {
extern const Kernels kFunctions, kMatmul;
}
namespace avxvnni {
extern const Kernels kMatmul, kAttention;
extern const Kernels kEvexMatmul, kEvexAttention;  // stand-ins for tests
}  // namespace avxvnni
namespace avx512 {
extern const Kernels kFunctions, kMatmul;
extern const Kernels kHalvedAttention, kStreamedAttention;  // for Zen 4, Zen 5
}  // namespace avx512
namespace amx {
extern const Kernels kMatmul;
extern const Kernels kEmulatedMatmul;  // a stand-in for tests
}  // namespace amx
namespace neon {
extern const Kernels kFunctions, kMatmul;
}

}  // namespace foretoken::kernels
