// SPDX-License-Identifier: Apache-2.0
// comm/thread_ranks_testing.h: ranks that are threads of one process, for unit tests.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/ranks.h"

namespace foretoken::comm {

// std::barrier, whose waits g++ 12 gets wrong on systems other than Linux.
class TeamBarrier {
 public:
  explicit TeamBarrier(int size) : size_(size) {}
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (++n_here_ == size_) {
      n_here_ = 0, ++phase_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [this, phase = phase_] { return phase != phase_; });
    }
  }

 private:
  const int size_;
  int n_here_ = 0, phase_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

// What the threads share: the buffers of those that are inside a call.
struct ThreadTeam {
  explicit ThreadTeam(int size) : barrier(size), buffers(static_cast<std::size_t>(size)) {}

  TeamBarrier barrier;
  std::vector<std::byte*> buffers;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(int rank, ThreadTeam& team)
      : Ranks(rank, std::vector<std::string>(team.buffers.size(), "here")), team_(team) {}

  bool Gather(std::byte* bytes, std::span<const std::int32_t> begins) noexcept override {
    return Collect(bytes, begins, true);
  }
  bool GatherToLead(std::byte* bytes, std::span<const std::int32_t> begins) noexcept override {
    return Collect(bytes, begins, leads());
  }
  bool Broadcast(std::span<std::byte> bytes) noexcept override {
    Show(bytes.data());
    if (rank_ != 0) std::copy_n(team_.buffers[0], bytes.size(), bytes.data());
    ++traffic_.broadcasts;
    team_.barrier.arrive_and_wait();
    return true;
  }
  bool Await(std::span<std::byte> bytes) noexcept override { return Broadcast(bytes); }
  bool Meet() noexcept override {
    team_.barrier.arrive_and_wait();
    return true;
  }
  void Abort(const std::string&) noexcept override {}
  void ExpectEnd() noexcept override {}

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  // receives: this rank gets the parts of the others.
  bool Collect(std::byte* bytes, std::span<const std::int32_t> begins, bool receives) {
    Show(bytes);
    for (int r = 0; receives && r < size_; ++r) {
      const std::int32_t begin = begins[at(r)], end = begins[at(r) + 1];
      if (r == rank_) continue;
      std::copy(team_.buffers[at(r)] + begin, team_.buffers[at(r)] + end, bytes + begin);
      traffic_.gathered_bytes += end - begin;
    }
    ++traffic_.gathers;
    team_.barrier.arrive_and_wait();
    return true;
  }
  void Show(std::byte* own) {
    team_.buffers[at(rank_)] = own;
    team_.barrier.arrive_and_wait();
  }

  ThreadTeam& team_;
};

// Calls work(ranks) on each of `size` ranks, and returns when all have ended.
inline void RunAsRanks(int size, const std::function<void(Ranks&)>& work) {
  ThreadTeam team(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&team, &work, rank] {
      ThreadRanks ranks(rank, team);
      work(ranks);
    });
}

}  // namespace foretoken::comm
