// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/memory_meter.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace foretoken::loader {
namespace {

constexpr std::size_t kFloats = std::size_t{64} << 20;

}  // namespace

MemoryMeter::MemoryMeter(ThreadPool& pool, const kernels::Kernels& kernels)
    : pool_(pool), kernels_(kernels), data_(kFloats) {
  pool_.Run([this](int thread) {
    const auto part = pool_.ShareOf(static_cast<int>(kFloats), thread, 64);
    std::fill(data_.data() + part.begin, data_.data() + part.end, 1.0F);
  });
}

double MemoryMeter::GigabytesPerSecond() noexcept {
  const double us = foretoken::Microseconds([this] {
    pool_.Run([this](int thread) {
      const auto part = pool_.ShareOf(static_cast<int>(kFloats), thread, 64);
      // Volatile, so that the reading is not optimised away.
      [[maybe_unused]] const volatile float most =
          kernels_.max(data_.data() + part.begin, part.end - part.begin);
    });
  });
  return static_cast<double>(kFloats * sizeof(float)) / us / 1e3;
}

}  // namespace foretoken::loader
