// SPDX-License-Identifier: Apache-2.0
#include "settings/process_ranks.h"

#include <utility>

namespace foretoken::settings {
namespace {

std::shared_ptr<RankGroup>& Kept() {
  static std::shared_ptr<RankGroup> ranks;
  return ranks;
}

}  // namespace

std::string RanksAmong(std::span<const std::string> arguments) {
  const std::string flag = "--ranks";
  std::string value = kRanksAuto;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
    if (arguments[i] == flag && i + 1 < arguments.size()) value = arguments[i + 1];
  }
  return value;
}

Flag RanksFlag() {
  return {
      {"--ranks"},
      "auto|mpi|numa|none",
      "processes that compute the model together: auto, those that mpirun or a batch system has "
      "started; mpi, join them in any case; numa, start one for each NUMA node of this machine; "
      "none, this process alone; default auto",
      [](const std::string&) { return Status(); },
      false,
      {kRanksAuto, kRanksMpi, kRanksNuma, kRanksNone}};
}

const std::shared_ptr<RankGroup>& ProcessRanks() {
  return Kept();
}

void SetProcessRanks(std::shared_ptr<RankGroup> ranks) {
  Kept() = std::move(ranks);
}

}  // namespace foretoken::settings
