// SPDX-License-Identifier: Apache-2.0
// comm/agreement.h: what ranks tell each other before they compute: texts, and facts in which they
// must agree.
//
// All ranks make these calls together. They may come at different times: however long the others
// take, the first ones wait.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/ranks.h"
#include "foretoken/result.h"

namespace foretoken::comm {

// Why the ranks cannot go on: a rank is lost.
[[nodiscard]] inline tl::unexpected<Error> Lost(const Ranks& ranks) {
  return Fail(ErrorCode::kRankLost, ranks.why());
}

// The text of each rank. Error: kRankLost.
[[nodiscard]] Result<std::vector<std::string>> GatherTexts(Ranks& ranks, std::string_view own);

// Something that must be the same on all ranks: "--ctx-size" is "4096".
struct Fact {
  std::string name, value;
};

// Compares the facts of all ranks with those of rank 0. Errors, the same on each rank: kMismatch (lists
// what differs, where), kRankLost.
[[nodiscard]] Status Agree(Ranks& ranks, std::span<const Fact> facts);

// Whether all ranks have done their part of something. Errors, the same on each rank: that of the first rank
// that failed, with the rank's name where it is another one; kRankLost.
[[nodiscard]] Status AllDone(Ranks& ranks, const Status& own);

}  // namespace foretoken::comm
