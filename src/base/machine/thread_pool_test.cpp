// SPDX-License-Identifier: Apache-2.0
#include "base/machine/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <numeric>

#include "base/machine/cpus.h"

namespace foretoken {
namespace {

#if !defined(_WIN32)
// Those that the calling thread may use, so that a test can give them back.
struct CpusOfThisThread {
  CpusOfThisThread() { sched_getaffinity(0, sizeof(set), &set); }
  void Restore() const { sched_setaffinity(0, sizeof(set), &set); }
  cpu_set_t set;
};
#endif

// Each phase reads what all threads wrote in the phase before. A barrier that lets a thread through
// early gives a wrong sum.
void RunPhases(int n_threads, int n_runs, int n_phases, const std::vector<int>& cpus = {}) {
  ThreadPool pool(n_threads, cpus);
  for (int run = 0; run < n_runs; ++run) {
    std::vector<int> values(static_cast<std::size_t>(n_threads), 1), next = values;
    pool.Run([&](int thread) {
      for (int phase = 0; phase < n_phases; ++phase) {
        auto& from = phase % 2 ? next : values;
        auto& to = phase % 2 ? values : next;
        to[static_cast<std::size_t>(thread)] = std::accumulate(from.begin(), from.end(), 0) % 1009;
        pool.Barrier();
      }
    });
    int expected = 1;
    for (int phase = 0; phase < n_phases; ++phase) expected = expected * n_threads % 1009;
    for (const int v : n_phases % 2 ? next : values) ASSERT_EQ(v, expected);
  }
}

TEST(ThreadPool, BarrierKeepsPhasesApartWithOneThread) {
  RunPhases(1, 10, 100);
}
TEST(ThreadPool, BarrierKeepsPhasesApartWithTwoThreads) {
  RunPhases(2, 10, 301);
}
TEST(ThreadPool, BarrierKeepsPhasesApartWithMoreThreadsThanCores) {
  RunPhases(static_cast<int>(std::thread::hardware_concurrency()) * 3 + 1, 10, 51);
}

TEST(ThreadPool, BarrierKeepsPhasesApartWithPinnedWorkers) {
  const std::vector<int> cpus = UsableCpus();
  for (const int n_threads : {1, 2, 5, 3 * static_cast<int>(cpus.size()) + 1})
    RunPhases(n_threads, 10, 51, cpus);
}
TEST(ThreadPool, BarrierKeepsPhasesApartWithFiveThreadsOnTwoCpus) {
  const std::vector<int> all = UsableCpus();
  const std::vector<int> two(all.begin(),
                             all.begin() + std::min<std::ptrdiff_t>(std::ssize(all), 2));
  std::thread([&] {
    ASSERT_TRUE(PinThisThread(two.back()));  // its workers inherit that
    RunPhases(5, 10, 51);
  }).join();
  RunPhases(5, 10, 51);
  RunPhases(5, 10, 51, two);
}

TEST(ThreadPool, WorkersStayOnTheirCpusAndOthersWhereTheyWere) {
  const std::vector<int> all = UsableCpus();
  std::vector<int> reversed(all.rbegin(), all.rend());
  for (const std::vector<int>& cpus : {all, reversed, std::vector<int>{}}) {
    constexpr int kThreads = 5;
    std::vector<std::vector<int>> seen(kThreads);
    ThreadPool pool(kThreads, cpus);
    pool.Run([&](int thread) { seen[static_cast<std::size_t>(thread)] = UsableCpus(); });
    for (std::size_t t = 0; t < kThreads; ++t)
      EXPECT_EQ(seen[t], t > 0 && t < cpus.size() ? std::vector<int>{cpus[t]} : all) << t;
  }
}

#if !defined(_WIN32)
// The caller is on the worker's CPU when a run begins, as after a pause. It does not stay there.
TEST(ThreadPool, ACallerOnTheCpuOfAWorkerMovesAway) {
  const std::vector<int> all = UsableCpus();
  if (UsableCores() < 2) GTEST_SKIP() << "one core";
  std::thread([&] {
    ThreadPool pool(2, {all[0], all[1]});
    pool.Run([](int) {});  // the worker has begun
    const CpusOfThisThread before;
    ASSERT_TRUE(PinThisThread(all[1]));
    before.Restore();
    int elsewhere = 0;
    pool.Run([&](int thread) {
      for (int phase = 0; phase < 50; ++phase) {
        if (thread == 0) elsewhere += ThisCpu() != all[1];
        pool.Barrier();
      }
    });
    EXPECT_GT(elsewhere, 0);
    EXPECT_EQ(UsableCpus(), all);
  }).join();
}
#endif

TEST(ThreadPool, ACpuThatIsNotThereIsNoObstacle) {
  RunPhases(3, 3, 11, {0, 1 << 20, -7});
}

TEST(ThreadPool, WorkersSleepAndWakeBetweenDistantRuns) {
  ThreadPool pool(3);
  for (int run = 0; run < 5; ++run) {
    std::atomic<int> calls{0};
    pool.Run([&](int) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadPool, RunsAloneBetweenRunsOfTheTeam) {
  ThreadPool pool(2);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> calls{0};
    pool.Run(
        [&](int thread) {
          EXPECT_EQ(thread, 0);
          pool.Barrier();
          calls.fetch_add(1);
          EXPECT_EQ(pool.ShareOf(10, 0).end, 10);
        },
        true);
    EXPECT_EQ(calls.load(), 1);
    pool.Run([&](int) { calls.fetch_add(1); });
    EXPECT_EQ(calls.load(), 3);
  }
}

TEST(ThreadPool, SharesCoverAllItemsOnceInWholeUnits) {
  ThreadPool pool(3);
  for (const int n : {0, 1, 31, 32, 33, 100, 4097}) {
    int next = 0;
    for (int t = 0; t < 3; ++t) {
      const auto share = pool.ShareOf(n, t, 16);
      EXPECT_EQ(share.begin, next);
      EXPECT_TRUE(share.begin % 16 == 0 || share.begin == n);
      next = share.end;
    }
    EXPECT_EQ(next, n);
  }
}

}  // namespace
}  // namespace foretoken
