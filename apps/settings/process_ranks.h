// SPDX-License-Identifier: Apache-2.0
// settings/process_ranks.h: the flag --ranks, and the ranks that this process has joined.
//
// A process joins its ranks before it reads its other flags, because all ranks but the first only
// follow. So the program looks for this flag first; ModelFlags has it too, for the help.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretoken/ranks.h"
#include "foretoken/result.h"
#include "settings/flag_set.h"

namespace foretoken::settings {

// "auto": where mpirun or a batch system has started several processes. "mpi": in any case. "numa": start
// one process for each NUMA node. "none": this process alone.
inline constexpr const char* kRanksAuto = "auto";
inline constexpr const char* kRanksMpi = "mpi";
inline constexpr const char* kRanksNuma = "numa";
inline constexpr const char* kRanksNone = "none";

// The value of --ranks among the arguments; "auto" if it is not there. Whether it is one of them is found when
// the flags are read.
std::string RanksAmong(std::span<const std::string> arguments);

// These arguments with this value of --ranks. REQUIRES: they have one.
std::vector<std::string> WithRanks(std::vector<std::string> arguments, const std::string& value);

Flag RanksFlag();

// What options of engines get. Null: this process alone.
const std::shared_ptr<RankGroup>& ProcessRanks();
void SetProcessRanks(std::shared_ptr<RankGroup> ranks);

}  // namespace foretoken::settings
