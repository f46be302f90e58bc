// SPDX-License-Identifier: Apache-2.0
#include "base/machine/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>

#include "base/check.h"
#include "base/machine/cpus.h"
#include "base/machine/word_wait.h"

namespace foretoken {
namespace {

void CpuPause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Long enough to bridge the engine's work between two steps, short enough not to burn a core while
// a person types. A team larger than the machine must not spin: the thread that all others wait for
// may be the one without a core, or spinning may use up the time that a quota leaves for work.
int SpinBudgetUs(int n_threads) {
  return n_threads <= UsableCores() ? 200 : 0;
}

// The number of this thread in the pool whose job it runs.
thread_local int this_thread = 0;

}  // namespace

ThreadPool::ThreadPool(int n_threads, const std::vector<int>& cpus)
    : n_threads_(n_threads),
      team_(n_threads),
      spin_budget_us_(SpinBudgetUs(n_threads)),
      cpus_(static_cast<std::size_t>(n_threads)) {
  FORETOKEN_CHECK(n_threads >= 1);
  for (std::atomic<int>& cpu : cpus_) cpu.store(-1, std::memory_order_relaxed);
  workers_.reserve(static_cast<std::size_t>(n_threads - 1));
  try {
    for (int t = 1; t < n_threads; ++t) {
      const std::size_t at = static_cast<std::size_t>(t);
      const int cpu = at < cpus.size() ? cpus[at] : -1;
      workers_.emplace_back([this, t, cpu] {
        if (cpu >= 0) PinThisThread(cpu);  // optional: the work is done without it too
        WorkerLoop(t);
      });
    }
  } catch (...) {  // no more threads: those that run must not outlive the pool
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  Stop();
}

void ThreadPool::Stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  WakeAll(generation_);
  for (auto& worker : workers_) worker.join();
}

// Whether the word changed within the spin budget.
bool ThreadPool::Spin(const std::atomic<std::uint32_t>& word, std::uint32_t old) const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::microseconds(spin_budget_us_);
  do {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) != old) return true;
      CpuPause();
    }
  } while (Clock::now() < until);
  return false;
}

void ThreadPool::Note(int thread) noexcept {
  std::atomic<int>& cpu = cpus_[static_cast<std::size_t>(thread)];
  if (const int now = ThisCpu(); cpu.load(std::memory_order_relaxed) != now)
    cpu.store(now, std::memory_order_relaxed);
}

// Two threads of a team that share a CPU while another one is idle wait for each other at each barrier
// as long as they spin, and the system may leave them there: a pass of 37 barriers then takes 8 ms. The one
// that runs moves to a CPU where no thread of the team was seen. It may run anywhere again at once.
void ThreadPool::StepAside(int thread) noexcept {
  Note(thread);
  const auto at = [this](int t) {
    return cpus_[static_cast<std::size_t>(t)].load(std::memory_order_relaxed);
  };
  bool shared = false;
  for (int t = 0; t < n_threads_; ++t) shared |= t != thread && at(t) == at(thread);
  if (shared && MoveAwayFrom(cpus_)) Note(thread);
}

void ThreadPool::Barrier() noexcept {
  // Read this before arriving: once the last thread has arrived, the owner may already set up the
  // next Run.
  const int team = team_;
  if (team == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == team) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    WakeAll(phase_);
  } else if (!Spin(phase_, phase)) {
    if (spin_budget_us_ > 0) StepAside(this_thread);
    while (phase_.load(std::memory_order_acquire) == phase) SleepWhile(phase_, phase);
  }
}

void ThreadPool::RunErased(Job job, void* argument) noexcept {
  if (team_ == 1) return job(argument, 0);
  this_thread = 0;
  Note(0);
  job_ = job;
  argument_ = argument;
  generation_.fetch_add(1, std::memory_order_release);
  WakeAll(generation_);
  job(argument, 0);
  Barrier();  // the last action of a worker in a job
}

void ThreadPool::WorkerLoop(int thread) noexcept {
  this_thread = thread;
  std::uint32_t seen = 0;
  for (;;) {
    if (!Spin(generation_, seen))
      while (generation_.load(std::memory_order_acquire) == seen) SleepWhile(generation_, seen);
    ++seen;
    Note(thread);
    if (stopping_.load(std::memory_order_relaxed)) return;
    job_(argument_, thread);
    Barrier();
  }
}

}  // namespace foretoken
