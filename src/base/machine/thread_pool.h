// SPDX-License-Identifier: Apache-2.0
// base/machine/thread_pool.h: a fixed team of threads that run one function together, with barriers inside
// it.
//
// A step of the engine is one Run: every thread goes through the same phases, with a Barrier()
// between them. A waiting thread spins first (phases are microseconds apart) and then sleeps, so
// that an idle engine costs nothing and a team larger than the machine still makes progress. It
// never changes a result which thread does which part.
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
  // n_threads >= 1 includes the caller, so n_threads - 1 workers are started. Worker t stays on
  // cpus[t], if the list has one, so that the system does not move it to a core that another worker
  // uses. The caller runs where the system wants, which is away from the workers. Throws
  // std::system_error if the system gives no more threads, as std::thread does.
  explicit ThreadPool(int n_threads, const std::vector<int>& cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept { return n_threads_; }

  // Calls fn(thread) once on each thread of the team, thread in [0, team()), where the caller is 0;
  // returns when all are done. The team is all threads, or only the caller if `alone` is set: for
  // work so small that waking other threads costs more than it saves. fn must not throw. One Run at
  // a time, always from the same thread. Allocates nothing.
  template <typename F>
  void Run(F&& fn, bool alone = false) noexcept {
    using Function = std::remove_reference_t<F>;
    team_ = alone ? 1 : n_threads_;
    RunErased([](void* f, int thread) { (*static_cast<Function*>(f))(thread); },
              const_cast<void*>(static_cast<const void*>(&fn)));
    team_ = n_threads_;
  }
  int team() const noexcept { return team_; }

  // Call it inside Run: it returns once every thread of the team has called it. Everything written
  // before is visible afterwards.
  void Barrier() noexcept;

  // Barriers that were passed in total, including those at the ends of Runs.
  std::uint32_t barriers_passed() const noexcept { return phase_.load(std::memory_order_relaxed); }

  // [begin, end): a thread's even share of n items, in units of `unit`.
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
  bool Spin(const std::atomic<std::uint32_t>& word, std::uint32_t old) const noexcept;
  void Note(int thread) noexcept;
  void StepAside(int thread) noexcept;

  const int n_threads_;
  int team_;  // threads of the Run in progress; written between Runs only
  const int spin_budget_us_;
  std::vector<std::thread> workers_;
  std::vector<std::atomic<int>> cpus_;  // [n_threads]: where each thread was seen last; -1: nowhere
  Job job_ = nullptr;
  void* argument_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{
      0};  // counts jobs; workers wait for it to move
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};  // counts barriers passed
  std::atomic<bool> stopping_{false};
};

}  // namespace foretoken
