// SPDX-License-Identifier: Apache-2.0
#include "server/net/work_gate.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace foretoken::server {

WorkGate::WorkGate(boost::asio::io_context& io, int n_workers, std::size_t max_bytes)
    : io_(io),
      most_large_(std::max(n_workers - 1, 1)),
      max_bytes_(max_bytes),
      more_works_(works_.get_executor()) {
  // asio's own pool of threads would wait for ever for those that it has, if it gets no more.
  try {
    for (int i = 0; i < n_workers; ++i) workers_.emplace_back([this] { works_.run(); });
  } catch (...) {
    works_.stop();
    throw;
  }
}

void WorkGate::Join() {
  more_works_.reset();
  workers_.clear();
}

void WorkGate::Post(Work work) {
  if (!IsLarge(work)) return Begin(std::move(work));
  waiting_.push_back(std::move(work));
  BeginLarge();
}

// In the order in which they came.
void WorkGate::BeginLarge() {
  while (!waiting_.empty() && n_large_ < most_large_ &&
         large_bytes_ + waiting_.front().bytes <= max_bytes_) {
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    Begin(std::move(work));
  }
}

void WorkGate::Begin(Work work) {
  if (!work.begins()) return;
  const std::size_t bytes = IsLarge(work) ? work.bytes : 0;
  n_large_ += bytes > 0;
  large_bytes_ += bytes;
  boost::asio::post(
      works_, [this, bytes, run = std::move(work.run), ended = std::move(work.ended)]() mutable {
        run();
        run = nullptr;
        boost::asio::post(io_, [this, bytes, ended = std::move(ended)] {
          n_large_ -= bytes > 0;
          large_bytes_ -= bytes;
          BeginLarge();
          ended();
        });
      });
}

}  // namespace foretoken::server
