// SPDX-License-Identifier: Apache-2.0
// comm/mpi.h: ranks that MPI starts and connects (mpirun, srun, an MPIJob).
#pragma once

#include <memory>

#include "comm/ranks.h"
#include "foretoken/result.h"

namespace foretoken::comm {

struct MpiOptions {
  double deadline_s = 10;  // the longest wait for other ranks while a pass runs
};

// Whether this build can use MPI.
bool HasMpi() noexcept;

// Whether this process was started by mpirun or by a batch system that starts MPI programs, as one
// of several. Asks the environment only.
bool StartedAsRank() noexcept;

// Joins the ranks; once in a process, which leaves them when the result is destroyed. Errors:
// kUnsupported (a build without MPI), kIo (MPI refuses).
[[nodiscard]] Result<std::unique_ptr<Ranks>> JoinMpi(const MpiOptions& options);

}  // namespace foretoken::comm
