// SPDX-License-Identifier: Apache-2.0
#include "server/worker_threads.h"

#include <system_error>
#include <utility>

namespace foretoken::server {

WorkerThreads::~WorkerThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::Add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { Work(); });
      return;
    } catch (const std::system_error&) {  // the system gives no more: those there are must do
      if (threads_.empty()) throw;
    }
  }
  wake_.notify_one();
}

void WorkerThreads::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace foretoken::server
