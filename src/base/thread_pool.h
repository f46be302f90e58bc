// SPDX-License-Identifier: Apache-2.0
// base/thread_pool.h: a fixed team of threads that run one function together, with barriers inside
// it.
//
// A step of the engine is one Run: every thread walks through the same phases and meets the others
// at Barrier() between them. Waiting spins first (a step's phases are microseconds apart) and
// sleeps after a budget, so that an idle engine costs nothing and a team larger than the machine
// still makes progress. Which thread does which part never changes a result.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace foretoken {

class ThreadPool {
 public:
  // n_threads >= 1 counts the caller: n_threads - 1 workers are started. Worker t stays on cpus[t]
  // where the list goes that far, so that the system moves it to no core that another one uses;
  // the caller itself goes where the system wants, which is away from the workers. Throws
  // std::system_error where the system gives no more threads, as std::thread does.
  explicit ThreadPool(int n_threads, const std::vector<int>& cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept { return n_threads_; }

  // Calls fn(thread) once on each thread of the team, thread in [0, team()), the caller being 0;
  // returns when all are done. The team is everybody, or the caller alone where `alone` is set: for
  // work so small that waking and meeting others costs more than it saves. fn must not throw. One
  // Run at a time, always from the same owner. Allocates nothing.
  template <typename F>
  void Run(F&& fn, bool alone = false) noexcept {
    using Function = std::remove_reference_t<F>;
    team_ = alone ? 1 : n_threads_;
    RunErased([](void* f, int thread) { (*static_cast<Function*>(f))(thread); },
              const_cast<void*>(static_cast<const void*>(&fn)));
    team_ = n_threads_;
  }
  int team() const noexcept { return team_; }

  // Inside Run: returns once every thread of the team has called it. All that was written before is
  // visible after.
  void Barrier() noexcept;

  // Barriers that were passed in all, those at the ends of Runs included.
  std::uint32_t barriers_passed() const noexcept { return phase_.load(std::memory_order_relaxed); }

  // [begin, end) of a thread's even share within the team of n items, in units of `unit`.
  struct Share {
    int begin, end;
  };
  Share ShareOf(int n, int thread, int unit = 1) const noexcept {
    const std::int64_t units = (n + unit - 1) / unit;
    const auto at = [&](std::int64_t t) { return static_cast<int>(units * t / team_) * unit; };
    const int begin = at(thread), end = at(thread + 1);
    return {begin < n ? begin : n, end < n ? end : n};
  }

 private:
  using Job = void (*)(void*, int);
  void Stop() noexcept;
  void RunErased(Job job, void* argument) noexcept;
  void WorkerLoop(int thread) noexcept;
  void WaitForChange(const std::atomic<std::uint32_t>& word, std::uint32_t old) const noexcept;

  const int n_threads_;
  int team_;  // threads of the Run in progress; written between Runs only
  const int spin_budget_us_;
  std::vector<std::thread> workers_;
  Job job_ = nullptr;
  void* argument_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{
      0};  // counts jobs; workers wait for it to move
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};  // counts barriers passed
  std::atomic<bool> stopping_{false};
};

}  // namespace foretoken
