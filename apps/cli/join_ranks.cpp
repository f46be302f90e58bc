// SPDX-License-Identifier: Apache-2.0
#include "cli/join_ranks.h"

#include <csignal>
#include <utility>

#include "cli/numa_ranks.h"
#include "cli/report.h"
#include "foretoken/ranks.h"
#include "settings/process_ranks.h"

namespace foretoken::cli {

namespace {

// All ranks have the same list of what differs; the first one prints it. The others have the exit code 0,
// because mpirun ends all ranks when one fails, and the first must have printed it by then.
int Refused(const Error& error) {
  const bool same = error.code == ErrorCode::kMismatch;
  return same && RankGroup::StartedRank() != 0 ? kDone : ReportError(error);
}

// A value: this process ends. Otherwise there is one node, and this process does the work alone.
std::optional<int> StartNumaRanks(const Arguments& arguments) {
  const int nodes = NumaNodes();
  if (nodes > 1)
    return ReportError(
        StartOnNumaNodes(nodes, settings::WithRanks(arguments, settings::kRanksMpi)));
  ReportNotice("--ranks numa: this machine has one NUMA node, so one process does all");
  return std::nullopt;
}

}  // namespace

std::optional<int> JoinRanks(const Arguments& arguments) {
  const std::string choice = settings::RanksAmong(arguments);
  if (choice == settings::kRanksNuma) return StartNumaRanks(arguments);
  const bool join = choice == settings::kRanksMpi ||
                    (choice == settings::kRanksAuto && RankGroup::StartedRanks() > 1);
  if (!join) return std::nullopt;
  auto group = RankGroup::Join({.arguments = arguments});
  if (!group) return Refused(group.error());
  if ((*group)->leads()) {
    settings::SetProcessRanks(std::move(*group));
    return std::nullopt;
  }
  // Rank 0 answers what is running, and then lets this rank leave. It hears of a SIGTERM here; the
  // others come from a terminal, and reach it too.
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  static RankGroup* followed_group = nullptr;
  followed_group = group->get();
  std::signal(SIGTERM, [](int) { followed_group->AskForEnd(); });
  const Status followed = (*group)->Follow();
  std::signal(SIGTERM, SIG_IGN);
  return followed ? kDone : ReportError(followed.error());
}

void LeaveRanks() {
  settings::SetProcessRanks(nullptr);
}

}  // namespace foretoken::cli
