// SPDX-License-Identifier: Apache-2.0
#include "comm/ranks.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "comm/mpi.h"

namespace foretoken::comm {
namespace {

std::string ThisHost() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

Alone::Alone() : Ranks(0, {ThisHost()}) {}

bool StartedAsRank() noexcept {
  // Open MPI, MPICH and its relatives, and what PMIx starts (srun).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace foretoken::comm
