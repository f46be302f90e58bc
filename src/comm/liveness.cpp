// SPDX-License-Identifier: Apache-2.0
#include "comm/liveness.h"

#include <algorithm>

namespace foretoken::comm {

Liveness::Liveness(const std::vector<int>& watched, Clock::duration silence, Clock::time_point now)
    : silence_(silence), asked_(now) {
  for (const int rank : watched) peers_.push_back({rank, 0, now});
}

void Liveness::Hear(int rank, std::int64_t calls, Clock::time_point now) noexcept {
  for (Peer& peer : peers_)
    if (peer.rank == rank) peer.calls = calls, peer.heard = now;
}

std::optional<int> Liveness::Lost(Clock::time_point now) noexcept {
  const bool slept = now - asked_ > silence_ / 2;
  asked_ = now;
  if (slept)
    for (Peer& peer : peers_) peer.heard = now;
  const auto oldest = std::min_element(
      peers_.begin(), peers_.end(), [](const Peer& a, const Peer& b) { return a.heard < b.heard; });
  if (oldest == peers_.end() || now - oldest->heard < silence_) return {};
  return oldest->rank;
}

std::optional<int> Liveness::Behind(std::int64_t calls) const noexcept {
  for (const Peer& peer : peers_)
    if (peer.calls < calls) return peer.rank;
  return {};
}

}  // namespace foretoken::comm
