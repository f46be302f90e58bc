// SPDX-License-Identifier: Apache-2.0
// comm/liveness.h: which other ranks still answer.
//
// Ranks send each other signs of life, with the number of calls that they have begun. Rank 0 watches
// all others, which watch rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace foretoken::comm {

class Liveness {
 public:
  using Clock = std::chrono::steady_clock;

  // silence: the time after which a rank without a sign of life is lost.
  Liveness(const std::vector<int>& watched, Clock::duration silence, Clock::time_point now);

  void SetSilence(Clock::duration silence) noexcept { silence_ = silence; }

  // A sign of life of a watched rank.
  void Hear(int rank, std::int64_t calls, Clock::time_point now) noexcept;

  // The rank whose last sign of life is the oldest, if it is lost. To be asked several times in the
  // time of silence: where this process itself was stopped for half of it, the others cannot be
  // blamed, and they get their whole time again.
  std::optional<int> Lost(Clock::time_point now) noexcept;

  // The first rank that has begun fewer calls than this one.
  std::optional<int> Behind(std::int64_t calls) const noexcept;

 private:
  struct Peer {
    int rank;
    std::int64_t calls;
    Clock::time_point heard;
  };

  Clock::duration silence_;
  Clock::time_point asked_;
  std::vector<Peer> peers_;
};

}  // namespace foretoken::comm
