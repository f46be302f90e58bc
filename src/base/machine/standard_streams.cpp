// SPDX-License-Identifier: Apache-2.0
#include "base/machine/standard_streams.h"

#include <csignal>

namespace foretoken {

void PrepareStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace foretoken
