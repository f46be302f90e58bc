// SPDX-License-Identifier: Apache-2.0
// server/worker_threads.h: threads that come with the work and wait for more, up to a number.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace foretoken::server {

class WorkerThreads {
 public:
  explicit WorkerThreads(int most) : most_(static_cast<std::size_t>(most)) {}
  ~WorkerThreads();  // what was added is done first
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // Where all are busy, it waits its turn.
  void Add(std::function<void()> task);

 private:
  void Work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace foretoken::server
