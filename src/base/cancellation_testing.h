// SPDX-License-Identifier: Apache-2.0
// base/cancellation_testing.h: checks in tests that a CancellationScope ends some work, wherever
// the work is just then.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "base/failure_testing.h"
#include "foretoken/cancellation.h"
#include "foretoken/result.h"

namespace foretoken {

// How often the work asks whether it is wanted.
inline std::size_t QuestionsOf(const std::function<Status()>& work) {
  std::size_t n_asked = 0;
  const CancellationScope scope([&] { return ++n_asked, false; });
  static_cast<void>(work());
  return n_asked;
}

// Runs the work until its question number `last`, which is answered with yes. Returns how it ended.
inline Status RunUntil(std::size_t last, const std::function<Status()>& work) {
  std::size_t n_asked = 0;
  const CancellationScope scope([&] { return ++n_asked >= last; });
  return work();
}

// The work takes `least_work` steps that are counted, or more.
inline void ExpectEndsWhenCancelled(const std::string& name, std::size_t least_work,
                                    const std::function<Status()>& work) {
  SCOPED_TRACE(name);
  const std::size_t n = QuestionsOf(work);
  ASSERT_GE(n, 2U);
  EXPECT_GE(n, least_work / CancellationScope::kWorkPerQuestion);
  for (const std::size_t last : std::set<std::size_t>{1, 2, n / 4 + 1, n / 2 + 1, n - n / 4, n})
    EXPECT_TRUE(Fails(RunUntil(last, work), ErrorCode::kStopped))
        << "question " << last << " of " << n;
}

}  // namespace foretoken
