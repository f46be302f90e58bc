// SPDX-License-Identifier: Apache-2.0
// server/engine_meter.h: brings what the engine's thread reports to the metrics and the totals.
#pragma once

#include "foretoken/async_engine.h"
#include "server/metrics.h"
#include "server/totals.h"

namespace foretoken::server {

class EngineMeter final : public AsyncObserver {
 public:
  // Both must outlive it.
  EngineMeter(Metrics& metrics, Totals& totals) : metrics_(metrics), totals_(totals) {}

  void OnRound(const RoundEvent& round, bool prefill, double gap_ms) override {
    metrics_.AddRound(round, prefill, gap_ms);
  }
  void OnStep(double actual_ms, double plain_ms) override {
    metrics_.AddTime(actual_ms, plain_ms);
    totals_.AddTime(actual_ms, plain_ms);
  }
  void OnEnd(const ChoiceEnd& end) override {
    if (end.completion.error) return;
    metrics_.AddEnd(end);
    totals_.Add(end);
  }

 private:
  Metrics& metrics_;
  Totals& totals_;
};

}  // namespace foretoken::server
