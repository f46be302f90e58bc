// SPDX-License-Identifier: Apache-2.0
// engine/thread_count.h: how many threads work is given.
#pragma once

#include "foretoken/result.h"

namespace foretoken::engine {

// `asked` if it is not 0, else FORETOKEN_THREADS, else the cores. Error: not in 1 to 512.
[[nodiscard]] Result<int> ThreadCount(int asked);

}  // namespace foretoken::engine
