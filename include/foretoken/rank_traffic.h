// SPDX-License-Identifier: Apache-2.0
// foretoken/rank_traffic.h: what a rank exchanges with the other ranks that compute a network with it.
#pragma once

#include <cstdint>

namespace foretoken {

struct RankTraffic {
  std::int64_t gathers = 0;
  std::int64_t gathered_bytes = 0;  // that this rank received from the others
  std::int64_t broadcasts = 0;
  double wait_us = 0;  // in gathers: the network, and slower ranks

  RankTraffic& operator+=(const RankTraffic& more) noexcept {
    gathers += more.gathers, gathered_bytes += more.gathered_bytes;
    broadcasts += more.broadcasts, wait_us += more.wait_us;
    return *this;
  }
  // What came after `before`.
  RankTraffic Since(const RankTraffic& before) const noexcept {
    return {gathers - before.gathers, gathered_bytes - before.gathered_bytes,
            broadcasts - before.broadcasts, wait_us - before.wait_us};
  }
};

}  // namespace foretoken
