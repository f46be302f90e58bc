// SPDX-License-Identifier: Apache-2.0
#include "server/net/work_gate.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace foretoken::server {
namespace {

TEST(WorkGate, JoinsWhatWasPosted) {
  boost::asio::io_context io;
  const auto more = boost::asio::make_work_guard(io);  // run_one waits for what the workers post
  std::atomic<int> n_run = 0;
  int n_ended = 0;
  WorkGate gate(io, 3, 1000);
  for (const std::size_t bytes : {10u, 900u, 900u, 10u})
    gate.Post({.bytes = bytes,
               .begins = [] { return true; },
               .run = [&] { ++n_run; },
               .ended = [&] { ++n_ended; }});
  while (n_ended < 4) io.run_one();
  gate.Join();
  EXPECT_EQ(n_run, 4);
}

// As where a limit on addresses leaves room for some of the stacks.
[[noreturn]] void AskForMoreThreadsThanThereIsRoomFor() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto room = static_cast<rlim_t>(pages) * 4096 + (36 << 20);
  const struct rlimit limit = {room, room};
  setrlimit(RLIMIT_AS, &limit);
  boost::asio::io_context io;
  try {
    const WorkGate gate(io, 64, 1000);
  } catch (const std::system_error&) {
    std::_Exit(7);
  }
  std::_Exit(0);
}

TEST(WorkGateDeathTest, GivesUpWhereTheSystemGivesTooFewThreads) {
  EXPECT_EXIT(AskForMoreThreadsThanThereIsRoomFor(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace foretoken::server
