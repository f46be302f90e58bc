// SPDX-License-Identifier: Apache-2.0
// comm/mpi.h: ranks that MPI starts and connects (mpirun, srun, an MPIJob).
//
// Calls of MPI come from two threads, one at a time (MPI_THREAD_SERIALIZED): the one that uses the
// ranks, and one that tells the other ranks ten times a second that this one is alive. So a rank that
// is gone or stopped is noticed while no pass runs too, and a rank that loads or computes for long is
// not taken for one.
#pragma once

#include <memory>

#include "comm/ranks.h"
#include "foretoken/result.h"

namespace foretoken::comm {

struct MpiOptions {
  // Where a rank stops answering, all have ended after this time. The loss is noticed after half of
  // it, a tenth of it is for the answers that say so, and mpirun needs a second or two to end all. A
  // rank that answers but does not take part in a pass is lost after six times as long, and so are
  // ranks that have not all joined.
  double deadline_s = 10;
};

// The number of processes that mpirun or a batch system has started together with this one, with it, and
// 1 where it runs alone. Asks the environment only.
int StartedRanks() noexcept;
// The number that this process has among them: 0 for the first, and where it runs alone.
int StartedRank() noexcept;

// Loads MPI (comm/mpi_plugin.h) and joins the ranks; once in a process, which leaves them when the result
// is destroyed. Errors: kUnsupported (MPI cannot be loaded), kIo (it refuses).
[[nodiscard]] Result<std::unique_ptr<Ranks>> JoinMpi(const MpiOptions& options);

}  // namespace foretoken::comm
