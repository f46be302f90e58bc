// SPDX-License-Identifier: Apache-2.0
// server/net/work_gate.h: the workers, and who may have one when.
//
// Work on a large body takes much memory and time. So such works wait for each other: together they
// take no more memory than was set aside for them, and one worker at least is left to all others.
// For the thread of all connections, but for the works, which run in the workers.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace foretoken::server {

class WorkGate {
 public:
  // max_bytes: of large works together. Throws std::system_error if the system gives no more threads.
  WorkGate(boost::asio::io_context& io, int n_workers, std::size_t max_bytes);
  ~WorkGate() { works_.stop(); }

  struct Work {
    std::size_t bytes = 0;         // that it takes, roughly
    std::function<bool()> begins;  // when its turn has come; false: nobody wants it any more
    std::function<void()> run;     // in a worker
    std::function<void()> ended;   // afterwards
  };
  // No work so large is ever begun.
  bool TooLarge(std::size_t bytes) const { return bytes > max_bytes_; }
  // REQUIRES: not too large.
  void Post(Work work);
  // Waits for what was posted; what it has to say afterwards is left to the io_context.
  void Join();

 private:
  bool IsLarge(const Work& work) const { return work.bytes > max_bytes_ / 16; }
  void BeginLarge();
  void Begin(Work work);

  boost::asio::io_context& io_;
  const int most_large_;
  const std::size_t max_bytes_;
  int n_large_ = 0;
  std::size_t large_bytes_ = 0;
  std::deque<Work> waiting_;  // large ones
  boost::asio::io_context works_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> more_works_;
  std::vector<std::jthread> workers_;
};

}  // namespace foretoken::server
