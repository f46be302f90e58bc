// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "comm/mpi.h"

namespace foretoken::comm {

bool StartedAsRank() noexcept {
  // Open MPI, MPICH and its relatives, and what PMIx starts (srun).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace foretoken::comm
