// SPDX-License-Identifier: Apache-2.0
// server/engine_thread.h: the one thread that moves the engine: takes jobs from the queue, steps,
// and tells each job's mailbox what happened.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretoken/engine.h"
#include "server/job_queue.h"
#include "server/metrics.h"
#include "server/plain_estimate.h"
#include "server/totals.h"

namespace foretoken::server {

class EngineThread {
 public:
  // All of them must outlive it. Measures plain decoding before it returns, unless the engine
  // records its requests.
  EngineThread(Engine& engine, JobQueue& queue, Metrics& metrics, Totals& totals,
               const EngineOptions& options);
  ~EngineThread();  // REQUIRES: the queue was stopped
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Any thread.
  double cache_usage() const { return cache_usage_.load(std::memory_order_relaxed); }
  // A plain token of a request alone; 0: not known.
  double plain_ms_per_token() const { return plain_ms_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running;

  void MeasurePlain();
  void Work();
  void TakeIn(bool wait);
  void Begin(std::unique_ptr<Job> job);
  bool See(Running& running, const RoundEvent& round);
  void StepOnce();
  void Account(double step_ms);
  void TakeOut();
  void End(Running& running, Completion completion);

  Engine& engine_;
  JobQueue& queue_;
  Metrics& metrics_;
  Totals& totals_;
  const int parallel_;
  PlainEstimate plain_;
  std::vector<std::unique_ptr<Running>> running_;
  bool going_ = true;
  std::atomic<double> cache_usage_ = 0, plain_ms_ = 0;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace foretoken::server
