// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/feature_queue.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken::draft {

FeatureQueue::FeatureQueue(int capacity, int width, int dim)
    : capacity_(capacity),
      width_(width),
      dim_(dim),
      rows_(static_cast<std::size_t>(capacity) * static_cast<std::size_t>(width)) {}

void FeatureQueue::Add(const Observation& o, int first, int n) noexcept {
  float* to = rows_.data() + std::int64_t{n_} * width_;
  n_ += n;
  newest_ = std::min(n, o.accepted + 1);
  if (o.feature_parts.empty()) {
    std::copy_n(o.features + std::int64_t{first} * width_, std::int64_t{n} * width_, to);
    return;
  }
  FORETOKEN_CHECK(std::ssize(o.feature_parts) * dim_ == width_);
  for (int row = first; row < first + n; ++row)
    for (const int part : o.feature_parts)
      to = std::copy_n(o.features + row * o.feature_stride + std::int64_t{part} * dim_, dim_, to);
}

void FeatureQueue::AddZeros() noexcept {
  std::fill_n(rows_.data() + std::int64_t{n_++} * width_, width_, 0.0F);
}

void FeatureQueue::Take(int n, float* to) noexcept {
  const std::int64_t taken = std::int64_t{n} * width_;
  std::copy_n(rows_.data(), taken, to);
  n_ -= n;
  std::copy_n(rows_.data() + taken, std::int64_t{n_} * width_, rows_.data());
}

}  // namespace foretoken::draft
