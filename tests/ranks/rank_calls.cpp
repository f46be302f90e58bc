// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_calls.cpp: what ranks do for each other, and what happens where one of them fails.
// Started by mpirun, and by calls_test.py.
//
// usage: rank_calls DEADLINE_S calls|busy|gathers|waits|aborts|dies|leaves [RANK]
// calls: each call. busy: the same, and a rank that is busy for longer than the deadline. gathers,
// waits: forever, all in a pass or without work; RANK stops (SIGSTOP) after a moment. aborts, dies:
// RANK ends all, or is killed. leaves: RANK leaves later than the others.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

void Sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank_calls: %s\n", what.c_str());
  std::exit(1);
}

// Parts of several sizes, one of them empty: not that of the last rank, for which others wait.
void CheckGather(comm::Ranks& ranks, int unit) {
  std::vector<std::int32_t> begins = {0};
  const int empty = ranks.size() == 2 ? 0 : 1;
  for (int r = 0; r < ranks.size(); ++r)
    begins.push_back(begins.back() + (r == empty ? 0 : (r + 1) * unit));
  std::vector<std::byte> bytes(static_cast<std::size_t>(begins.back()));
  const auto own = static_cast<std::size_t>(ranks.rank());
  for (int i = begins[own]; i < begins[own + 1]; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(i * 7 + ranks.rank());
  Check(ranks.Gather(bytes.data(), begins), ranks.why());
  for (int r = 0; r < ranks.size(); ++r)
    for (int i = begins[static_cast<std::size_t>(r)]; i < begins[static_cast<std::size_t>(r) + 1];
         ++i)
      Check(bytes[static_cast<std::size_t>(i)] == static_cast<std::byte>(i * 7 + r),
            "a gather brought other bytes");
}

// Rank 0 has no work for busy_s, then the last rank computes for so long.
void CheckCalls(comm::Ranks& ranks, double busy_s) {
  for (const int unit : {1, 90, 40000}) CheckGather(ranks, unit);
  Check(ranks.traffic().gathers == 3, "gathers are counted");
  std::vector<std::byte> word(8, static_cast<std::byte>(ranks.rank()));
  Check(ranks.Broadcast(word), ranks.why());
  Check(word[7] == std::byte{0}, "a broadcast brought other bytes");
  if (ranks.leads()) Sleep(busy_s), word[0] = std::byte{9};
  Check(ranks.leads() ? ranks.Broadcast(word) : ranks.Await(word), ranks.why());
  Check(word[0] == std::byte{9}, "waiting for work brought other bytes");
  if (ranks.rank() == ranks.size() - 1) Sleep(busy_s);
  CheckGather(ranks, 16);
  Check(!ranks.host(ranks.rank()).empty(), "a rank's machine has no name");
}

// One rank stops while the others are in a pass, or wait for work. They say so, and then wait to be
// ended.
void Stop(comm::Ranks& ranks, const std::string& what, int stopped) {
  Sleep(0.3);
  if (ranks.rank() == stopped) {
    raise(SIGSTOP);
    std::_Exit(1);  // mpirun lets a stopped process go on before it ends it
  }
  std::vector<std::byte> word(8);
  const auto begin = Clock::now();
  if (what == "waits") {
    if (ranks.leads()) Sleep(1000);
    Check(!ranks.Await(word), "a call succeeds without one of the ranks");
  } else {
    const std::vector<std::int32_t> begins = [&] {
      std::vector<std::int32_t> at(static_cast<std::size_t>(ranks.size()) + 1);
      std::iota(at.begin(), at.end(), 0);
      return at;
    }();
    std::vector<std::byte> all(begins.size());
    Check(!ranks.Gather(all.data(), begins), "a call succeeds without one of the ranks");
    Check(!ranks.Gather(all.data(), begins), "a call succeeds after one that failed");
  }
  std::printf("after %.1f s: %s\n", std::chrono::duration<double>(Clock::now() - begin).count(),
              ranks.why().c_str());
  std::fflush(stdout);
  Sleep(1000);
}

int Run(double deadline_s, const std::string& what, int rank) {
  auto joined = comm::JoinMpi({.deadline_s = deadline_s});
  Check(joined.has_value(), joined ? "" : joined.error().message);
  comm::Ranks& ranks = **joined;
  if (what == "calls") CheckCalls(ranks, 0);
  if (what == "busy") CheckCalls(ranks, 1.5 * deadline_s);
  if (what == "gathers" || what == "waits") Stop(ranks, what, rank);
  if (what == "aborts" && ranks.rank() == rank) ranks.Abort("this rank cannot go on");
  if (what == "dies" && ranks.rank() == rank) kill(getpid(), SIGKILL);
  if (what == "aborts" || what == "dies") Sleep(1000);
  if (what == "leaves" && ranks.rank() == rank) Sleep(1.5 * deadline_s);
  if (ranks.leads()) std::printf("%d ranks: done\n", ranks.size());
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return foretoken::Run(std::atof(argv[1]), argv[2], argc > 3 ? std::atoi(argv[3]) : -1);
}
