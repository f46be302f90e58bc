// SPDX-License-Identifier: Apache-2.0
// server/engine_meter.h: brings what the engine's thread reports to the metrics, the totals and the log.
#pragma once

#include "foretoken/async_engine.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/totals.h"

namespace foretoken::server {

class EngineMeter final : public AsyncObserver {
 public:
  // All must outlive it.
  EngineMeter(Metrics& metrics, Totals& totals, RequestLog& log)
      : metrics_(metrics), totals_(totals), log_(log) {}

  void OnRound(const RoundEvent& round, bool prefill, double gap_ms) override {
    metrics_.AddRound(round, prefill, gap_ms);
  }
  void OnStep(double actual_ms, double plain_ms) override {
    metrics_.AddTime(actual_ms, plain_ms);
    totals_.AddTime(actual_ms, plain_ms);
  }
  void OnCacheFileError(const Error& error) override {
    log_.Write(LogLine().Add("event", "cache_file").Add("error", error.message));
    told_cache_file_ = true;
  }
  void OnEnd(const ChoiceEnd& end) override {
    if (end.completion.error) return;
    metrics_.AddEnd(end);
    totals_.Add(end);
  }
  // Whether the log has it. REQUIRES: the engine's thread has ended.
  bool told_cache_file() const { return told_cache_file_; }

 private:
  Metrics& metrics_;
  Totals& totals_;
  RequestLog& log_;
  bool told_cache_file_ = false;
};

}  // namespace foretoken::server
