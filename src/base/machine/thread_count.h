// SPDX-License-Identifier: Apache-2.0
// base/machine/thread_count.h: the number of threads.
#pragma once

#include "foretoken/result.h"

namespace foretoken {

// `asked` if it is not 0, else FORETOKEN_THREADS, else the cores that the process may use
// (UsableCores() of base/machine/cpus.h). Cores, not hyperthreads: two hyperthreads of a core share one
// path to memory and one multiplier, so more threads than cores only make each barrier slower.
// Error: not in 1 to 512.
[[nodiscard]] Result<int> ThreadCount(int asked);

}  // namespace foretoken
