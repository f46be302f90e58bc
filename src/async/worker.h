// SPDX-License-Identifier: Apache-2.0
// async/worker.h: the one thread that runs the engine: it takes choices from the queue, steps, and
// reports to each choice's mailbox.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "async/request_queue.h"
#include "foretoken/async_engine.h"

namespace foretoken::async {

class Worker {
 public:
  // All arguments must outlive it. observer: or null. The thread begins with Start.
  Worker(Engine& engine, RequestQueue& queue, AsyncObserver* observer);
  ~Worker();  // REQUIRES: the queue was stopped
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Decodes a few tokens without drafts, as AsyncOptions::measure_plain. REQUIRES: not started.
  void MeasurePlain();
  void Start();
  // Waits for the thread. REQUIRES: the queue was stopped.
  void Join();

  // Shows the engine's counts to others, and tells the observer of the cache's file. The engine's thread,
  // or before it begins.
  void ShowState();

  // Any thread.
  EngineSnapshot snapshot() const;
  std::vector<RowCost> PassCosts() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Running;

  void Work() noexcept;
  void TakeIn(bool wait);
  void Begin(std::unique_ptr<Waiting> waiting);
  bool Record(Running& r, const RoundEvent& round);
  void StepOnce();
  void ObserveTime(double step_ms);
  void TakeOut();
  void End(Running& r, Completion completion);
  void ShowCosts();
  void TellCacheFile();

  Engine& engine_;
  RequestQueue& queue_;
  AsyncObserver* const observer_;
  std::vector<std::unique_ptr<Running>> running_;
  bool going_ = true;
  bool cache_file_told_ = false;
  mutable std::mutex mutex_;
  EngineSnapshot snapshot_;          // guarded
  std::vector<RowCost> pass_costs_;  // guarded
  std::thread thread_;               // the last member: it uses the others
};

}  // namespace foretoken::async
