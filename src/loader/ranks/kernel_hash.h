// SPDX-License-Identifier: Apache-2.0
// loader/ranks/kernel_hash.h: whether processors compute alike.
#pragma once

#include <cstdint>

namespace foretoken::loader {

// A hash of the results of the main kernels on numbers that never change. Each instruction set gives
// the same. REQUIRES: FORETOKEN_ISA names an instruction set or none.
std::uint64_t KernelHash();

}  // namespace foretoken::loader
