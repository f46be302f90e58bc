// SPDX-License-Identifier: Apache-2.0
#include "settings/process_ranks.h"

#include <utility>

namespace foretoken::settings {
namespace {

std::shared_ptr<RankGroup>& Kept() {
  static std::shared_ptr<RankGroup> ranks;
  return ranks;
}

// Calls found(argument, begin) for each value of --ranks: it is the argument from `begin` on.
template <typename Strings, typename F>
void ForEachValue(Strings& arguments, F&& found) {
  const std::string flag = "--ranks";
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i].starts_with(flag + "=")) found(arguments[i], flag.size() + 1);
    if (arguments[i] == flag && i + 1 < arguments.size()) found(arguments[++i], std::size_t{0});
  }
}

}  // namespace

std::string RanksAmong(std::span<const std::string> arguments) {
  std::string value = kRanksAuto;
  ForEachValue(arguments, [&](const std::string& argument, std::size_t begin) {
    value = argument.substr(begin);
  });
  return value;
}

std::vector<std::string> WithRanks(std::vector<std::string> arguments, const std::string& value) {
  ForEachValue(arguments, [&](std::string& argument, std::size_t begin) {
    argument.replace(begin, std::string::npos, value);
  });
  return arguments;
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
