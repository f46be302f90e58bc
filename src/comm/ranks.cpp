// SPDX-License-Identifier: Apache-2.0
#include "comm/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>

#include "comm/mpi.h"

namespace foretoken::comm {
namespace {

std::string ThisHost() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

std::string Ranks::lost() const {
  const std::lock_guard lock(lost_mutex_);
  return lost_;
}

void Ranks::SetLost(const std::string& why) {
  const std::lock_guard lock(lost_mutex_);
  lost_ = why;
}

Alone::Alone() : Ranks(0, {ThisHost()}) {}

namespace {

// The first of these variables that is a number of at least `least`; `least` where none is.
int FirstOf(std::initializer_list<const char*> variables, int least) {
  for (const char* const name : variables)
    if (const char* const text = std::getenv(name)) return std::max(least, std::atoi(text));
  return least;
}

}  // namespace

// Open MPI's variables, those of MPICH and its relatives, and of steps of Slurm that PMIx connects.
int StartedRanks() noexcept {
  const bool slurm = std::getenv("PMIX_RANK") != nullptr;
  return FirstOf({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", slurm ? "SLURM_STEP_NUM_TASKS" : ""}, 1);
}
int StartedRank() noexcept {
  return FirstOf({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0);
}

}  // namespace foretoken::comm
