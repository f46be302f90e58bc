// SPDX-License-Identifier: Apache-2.0
#include "cli/join_ranks.h"

#include <csignal>
#include <utility>

#include "cli/report.h"
#include "foretoken/ranks.h"
#include "settings/process_ranks.h"

namespace foretoken::cli {

namespace {

// All ranks have the same list of what differs; the first one prints it.
int Refused(const Error& error) {
  const bool same = error.code == ErrorCode::kMismatch;
  return same && RankGroup::StartedRank() != 0 ? kFailed : ReportError(error);
}

}  // namespace

std::optional<int> JoinRanks(const Arguments& arguments) {
  const std::string choice = settings::RanksAmong(arguments);
  const bool join = choice == settings::kRanksMpi ||
                    (choice == settings::kRanksAuto && RankGroup::StartedRanks() > 1);
  if (!join) return std::nullopt;
  auto group = RankGroup::Join({.arguments = arguments});
  if (!group) return Refused(group.error());
  if ((*group)->leads()) {
    settings::SetProcessRanks(std::move(*group));
    return std::nullopt;
  }
  // Rank 0 answers what is running, and then lets this rank leave.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  const Status followed = (*group)->Follow();
  return followed ? kDone : ReportError(followed.error());
}

void LeaveRanks() {
  settings::SetProcessRanks(nullptr);
}

}  // namespace foretoken::cli
