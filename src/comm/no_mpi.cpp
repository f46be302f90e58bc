// SPDX-License-Identifier: Apache-2.0
// What takes the place of mpi.cpp in a build without MPI.
#include "comm/mpi.h"

namespace foretoken::comm {

bool HasMpi() noexcept {
  return false;
}

Result<std::unique_ptr<Ranks>> JoinMpi(const MpiOptions&) {
  return Fail(ErrorCode::kUnsupported,
              "ranks: this build has no MPI; install libopenmpi-dev or libmpich-dev, and build "
              "again");
}

}  // namespace foretoken::comm
