// SPDX-License-Identifier: Apache-2.0
// base/growth_testing.h: measures in tests how the work of a function grows with the size of its
// input. Work is counted in instructions of the processor, those of libraries included, so that
// neither other programs nor the speed of the machine change the result.
//
//   EXPECT_LE(InstructionExponent({4096, 16384}, [](std::size_t size) {
//               return [text = std::string(size, 'x')] { Parse(text); };
//             }),
//             kMostLinear);
//
// valgrind's callgrind counts, so these tests have programs of their own (GROWTH_TESTS of
// foretoken_module), which ctest starts under it: `ctest -L growth`. Elsewhere all their tests are
// skipped.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "foretoken/cancellation.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND false
#define CALLGRIND_TOGGLE_COLLECT
#define VALGRIND_MONITOR_COMMAND(command)
#endif

namespace foretoken {

// Skips all tests of a program that runs without callgrind. GROWTH_COUNTS names valgrind's
// --log-file.
class GrowthEnvironment : public testing::Environment {
  void SetUp() override {
    if (!RUNNING_ON_VALGRIND || std::getenv("GROWTH_COUNTS") == nullptr)
      GTEST_SKIP() << "growth tests count instructions under callgrind; ctest starts them so";
  }
};
inline const testing::Environment* const kGrowthEnvironment =
    testing::AddGlobalTestEnvironment(new GrowthEnvironment);

// The instructions of this thread that callgrind has collected. Its answer to the command `status
// internal` is written behind the log file's end and has a line "events-T: N" for the thread T. A
// dump would hold the number too, but takes as long as millions of instructions.
inline std::uint64_t CollectedInstructions() {
  const char* const path = std::getenv("GROWTH_COUNTS");
  std::ifstream log(path, std::ios::ate);
  VALGRIND_MONITOR_COMMAND("status internal");
  constexpr std::string_view kThread = "current-tid: ";
  std::string events;
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with(kThread)) events = "events-" + line.substr(kThread.size()) + ": ";
    if (!events.empty() && line.starts_with(events)) return std::stoull(line.substr(events.size()));
  }
  ADD_FAILURE() << path << " has no count: is it callgrind that runs this program?";
  return 0;
}

// The instructions that run() takes in this thread. Collection is off before and after it.
inline std::uint64_t Instructions(const std::function<void()>& run) {
  const std::uint64_t before = CollectedInstructions();
  CALLGRIND_TOGGLE_COLLECT;
  run();
  CALLGRIND_TOGGLE_COLLECT;
  const std::uint64_t total = CollectedInstructions() - before;
  EXPECT_GT(total, 0u);
  return total;
}

// The instructions of run() from question number `from` of its CancellationScope, or from the
// beginning if that is 0, to its end, which the next question tells it. If there are fewer
// questions it runs to its end.
inline std::uint64_t InstructionsFromQuestion(std::size_t from, const std::function<void()>& run) {
  std::uint64_t before = CollectedInstructions();
  CALLGRIND_TOGGLE_COLLECT;
  {
    std::size_t n_asked = 0;
    const CancellationScope scope([&] {
      if (++n_asked == from) before = CollectedInstructions();
      return n_asked > from;
    });
    run();
  }
  CALLGRIND_TOGGLE_COLLECT;
  return CollectedInstructions() - before;
}

// The two sizes of an input whose work is compared.
struct Sizes {
  std::size_t smaller = 0, larger = 0;
};

// The most that linear work may measure, and n log n, which measures 1.1 at the sizes of the tests.
constexpr double kMostLinear = 1.15;

// Limits of instructions are those of builds with optimisation; other builds take this many times
// as many, at most.
#ifdef __OPTIMIZE__
constexpr std::uint64_t kBuildFactor = 1;
#else
constexpr std::uint64_t kBuildFactor = 10;
#endif

// The power of the size with which work grows: 1 is linear, 2 is quadratic.
inline double GrowthExponent(Sizes sizes, double work_of_smaller, double work_of_larger) {
  return std::log(work_of_larger / work_of_smaller) /
         std::log(static_cast<double>(sizes.larger) / static_cast<double>(sizes.smaller));
}

// prepare(size) returns the function to measure, with its input inside; only that function is
// counted. It runs once before, so that tables which are made at first use do not count.
inline double InstructionExponent(
    Sizes sizes, const std::function<std::function<void()>(std::size_t)>& prepare) {
  const std::function<void()> smaller = prepare(sizes.smaller);
  smaller();
  const std::uint64_t work_of_smaller = Instructions(smaller);
  const std::uint64_t work_of_larger = Instructions(prepare(sizes.larger));
  return GrowthExponent(sizes, static_cast<double>(work_of_smaller),
                        static_cast<double>(work_of_larger));
}

inline void ExpectLinear(const std::string& name, Sizes sizes,
                         const std::function<std::function<void()>(std::size_t)>& prepare) {
  EXPECT_LE(InstructionExponent(sizes, prepare), kMostLinear) << name;
}

// Wherever run() is told to end, little is done from the question before to the end.
inline void ExpectLittleWorkWhenCancelled(const std::string& name,
                                          const std::function<void()>& run) {
  SCOPED_TRACE(name);
  std::size_t n_asked = 0;
  const std::uint64_t whole = Instructions([&] {
    const CancellationScope scope([&] { return ++n_asked, false; });
    run();
  });
  ASSERT_GE(n_asked, 4u);
  // 4,096 steps, and the end of what was made.
  const std::uint64_t most = 20'000'000 * kBuildFactor + whole / 4;
  for (const std::size_t sixth : {0, 2, 4})
    EXPECT_LE(InstructionsFromQuestion(n_asked * sixth / 6, run), most)
        << "of " << whole << ", in sixth " << sixth;
}

// `part`, repeated as often as it fits into size bytes.
inline std::string Repeated(std::string_view part, std::size_t size) {
  std::string text;
  while (text.size() + part.size() <= size) text += part;
  return text;
}

// n times `part`, with `between` between: @ stands for the number of a part, @+ for the next one.
inline std::string Numbered(std::size_t n, std::string_view part, std::string_view between = "") {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) text += between;
    for (std::size_t at = 0; at < part.size(); ++at) {
      const bool next = part.substr(at).starts_with("@+");
      part[at] == '@' ? text += std::to_string(next ? i + 1 : i) : text += part[at];
      at += next;
    }
  }
  return text;
}

}  // namespace foretoken
