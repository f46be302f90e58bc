// SPDX-License-Identifier: Apache-2.0
// server/engine_thread.h: the one thread that runs the engine: it takes jobs from the queue, steps,
// and reports to each job's mailbox.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "foretoken/engine.h"
#include "server/job_queue.h"
#include "server/metrics.h"
#include "server/totals.h"

namespace foretoken::server {

class EngineThread {
 public:
  // All arguments must outlive it. Measures plain decoding before it returns, unless the engine
  // records its requests.
  EngineThread(Engine& engine, JobQueue& queue, Metrics& metrics, Totals& totals,
               const EngineOptions& options);
  ~EngineThread();  // REQUIRES: the queue was stopped
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Any thread.
  double cache_usage() const { return cache_usage_.load(std::memory_order_relaxed); }
  // The time of a plain token of a request that is alone; 0: not known.
  double plain_ms_per_token() const { return plain_ms_.load(std::memory_order_relaxed); }
  // What a pass costs by its rows, at the end of the last request.
  std::vector<RowCost> pass_costs() const {
    const std::lock_guard lock(costs_mutex_);
    return pass_costs_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running;

  void MeasurePlain();
  void Work();
  void TakeIn(bool wait);
  void Begin(std::unique_ptr<Job> job);
  bool Record(Running& running, const RoundEvent& round);
  void StepOnce();
  void Account(double step_ms);
  void TakeOut();
  void EndWithError(Running& running, Error error);
  void End(Running& running, Completion completion);
  void ShowCosts();

  Engine& engine_;
  JobQueue& queue_;
  Metrics& metrics_;
  Totals& totals_;
  const int parallel_;
  std::vector<std::unique_ptr<Running>> running_;
  bool going_ = true;
  std::atomic<double> cache_usage_ = 0, plain_ms_ = 0;
  mutable std::mutex costs_mutex_;
  std::vector<RowCost> pass_costs_;  // guarded by it
  std::thread thread_;               // the last member: it uses the others
};

}  // namespace foretoken::server
