// SPDX-License-Identifier: Apache-2.0
// base/machine/pause.h: pauses of one thread that another thread can end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace foretoken {

class Pause {
 public:
  // Waits so long, or until End. False: End was called, so that there are no more pauses.
  bool For(std::chrono::steady_clock::duration time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [this] { return ended_; });
  }
  // Any thread.
  void End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace foretoken
