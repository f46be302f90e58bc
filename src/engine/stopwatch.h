// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace foretoken::engine {

// How long work() takes.
template <typename F>
double Microseconds(F&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace foretoken::engine
