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

#include "foretoken/engine.h"
#include "server/mailbox.h"
#include "server/overload.h"

namespace foretoken::server {

// What was counted of a request round by round. Its end adds the rest (a round that was not
// reported because its reader had gone).
struct Counted {
  std::int64_t draft_rounds = 0, drafted = 0, judged = 0, accepted = 0;
  std::int64_t recovered = 0, bonus = 0, plain = 0;
};

class Metrics {
 public:
  explicit Metrics(const std::string& model_name);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // prefill: the round had prompt rows. gap_ms: since the request's last tokens, or its arrival.
  void AddRound(const RoundEvent& round, bool prefill, double gap_ms, Counted& counted);
  // A choice has ended. prompt_tokens: 0 for all choices of a prompt except the first.
  void AddEnd(const ChoiceEnd& end, const Counted& counted, std::string_view drafter,
              int prompt_tokens);
  // Decoding time of a step, as in Totals.
  void AddTime(double actual_ms, double plain_ms);
  void AddResponse(int status);
  // The engine's present counters. The first call sets their starting point.
  void SeeEngine(const EngineCounts& counts, const EngineLoad& load);

  // Values at the moment of the request.
  struct Now {
    int running = 0, waiting = 0;
    double cache_usage = 0;  // [0, 1]
    std::int64_t log_lines_dropped = 0;
    const Overload* memory = nullptr;
    std::optional<double> estimated_speedup;
    std::optional<double> plain_ms_per_token;
  };
  // The text format 0.0.4.
  std::string Render(const Now& now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::server
