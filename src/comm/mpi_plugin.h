// SPDX-License-Identifier: Apache-2.0
// comm/mpi_plugin.h: what the plug-in libforetoken_mpi.so exports, and nothing else. It alone is linked
// with an MPI library; JoinMpi opens it.
//
// Classes of C++ pass between the two, so both come from one build. The first two members tell.
#pragma once

#include "comm/mpi.h"

namespace foretoken::comm {

struct MpiPlugin {
  const char* version;        // of foretoken
  std::size_t size_of_ranks;  // of the class Ranks
  Result<std::unique_ptr<Ranks>> (*join)(const MpiOptions&);
};

}  // namespace foretoken::comm

extern "C" const foretoken::comm::MpiPlugin foretoken_mpi_plugin;
