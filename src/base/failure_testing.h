// SPDX-License-Identifier: Apache-2.0
// base/failure_testing.h: what a test expects of a Result or a Status.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "foretoken/result.h"

namespace foretoken {

// The value. Without one the test ends and tells the error.
template <typename T>
T Got(Result<T> result) {
  EXPECT_TRUE(result) << result.error().message;
  return std::move(result).value();
}
// The message of the error; empty, if there is none.
template <typename Outcome>
std::string MessageOf(const Outcome& result) {
  return result ? "" : result.error().message;
}
// Whether there is no error.
template <typename Outcome>
testing::AssertionResult Works(const Outcome& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().message;
}
// Whether there is an error, and its message has this part.
template <typename Outcome>
testing::AssertionResult Fails(const Outcome& result, std::string_view part) {
  if (result) return testing::AssertionFailure() << "there is no error: " << part;
  if (result.error().message.find(part) != std::string_view::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().message << "\nhas no: " << part;
}
template <typename Outcome>
testing::AssertionResult Fails(const Outcome& result, ErrorCode code, std::string_view part = "") {
  if (!result && result.error().code != code)
    return testing::AssertionFailure() << "another kind of error: " << result.error().message;
  return Fails(result, part);
}

}  // namespace foretoken
