// SPDX-License-Identifier: Apache-2.0
// server/metrics.h: counters for Prometheus, named like those of vLLM and llama.cpp, with the
// prefix foretoken: (docs/serving.md lists them). Only metrics.cpp includes prometheus-cpp.
//
// Any thread may use it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "foretoken/async_engine.h"
#include "server/overload.h"

namespace foretoken::server {

class Metrics {
 public:
  explicit Metrics(const std::string& model_name);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // prefill: the round had prompt rows. gap_ms: since the request's last tokens, or its arrival.
  void AddRound(const RoundEvent& round, bool prefill, double gap_ms);
  // A choice has ended. Adds what its rounds did not report.
  void AddEnd(const ChoiceEnd& end);
  // Decoding time of a step, as in Totals.
  void AddTime(double actual_ms, double plain_ms);
  void AddResponse(int status);
  // What the engine counted before this is not shown. Call it before the first Render.
  void BeginAt(const EngineSnapshot& engine);

  // Values at the moment of the request.
  struct Now {
    AsyncLoad load;
    EngineSnapshot engine;
    std::int64_t log_lines_dropped = 0;
    std::int64_t next_turn_tokens = 0;  // NextTurns::tokens
    const Overload* memory = nullptr;
    CopyProgress copy;
    std::optional<double> estimated_speedup;
  };
  // The text format 0.0.4.
  std::string Render(const Now& now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::server
