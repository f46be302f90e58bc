// SPDX-License-Identifier: Apache-2.0
// cli/join_ranks.h: the program as one of several ranks.
#pragma once

#include <optional>

#include "cli/verb.h"

namespace foretoken::cli {

// Joins the ranks that the arguments or mpirun ask for. A value if this process ends here: its exit code,
// after it has followed rank 0, or after an error was printed. Otherwise it is rank 0, or alone.
[[nodiscard]] std::optional<int> JoinRanks(const Arguments& arguments);

// Rank 0 lets the others leave.
void LeaveRanks();

}  // namespace foretoken::cli
