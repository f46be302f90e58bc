// SPDX-License-Identifier: Apache-2.0
// <sys/random.h> for Windows: see base/windows/README.md.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace foretoken {

ssize_t getrandom(void* bytes, std::size_t n, unsigned flags);

}  // namespace foretoken
