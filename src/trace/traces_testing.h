// SPDX-License-Identifier: Apache-2.0
// trace/traces_testing.h: recorded runs of a made-up machine, for tests.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "base/files/whole_file_testing.h"
#include "base/rng.h"
#include "foretoken/tools/replay.h"
#include "trace/run_recorder.h"

namespace foretoken::trace {

// A text whose drafts are right or wrong by position, and what passes cost.
struct TracedWorld {
  std::function<bool(int request, int position)> right;
  std::function<double(int rows, int context)> pass_us = [](int rows, int) {
    return 1000.0 + 100 * (rows - 1);
  };
  double draft_us = 120, rest_us = 5;
  bool at_once = false;  // draft_us is for all drafts of a round
  // Positions at which the drafter knows nothing.
  std::function<bool(int request, int position)> silent = [](int, int) { return false; };
  double noise = 0;  // each time is more by this share at most
  int prompt_tokens = 10, tokens = 200;
};

// Each position is right with this probability, whatever asks.
inline std::function<bool(int, int)> RightWith(double probability, unsigned seed) {
  return [=](int request, int position) {
    const Noise noise(seed, static_cast<std::uint64_t>(request));
    return noise.Uniform(Stream::kTarget, position) < probability;
  };
}

inline void RunWorld(const TracedWorld& world, int k, int request, RunTrace& trace) {
  std::mt19937 random(static_cast<unsigned>(request) + 1);
  const auto noisy = [&](double us) {
    return us * (1 + world.noise * std::uniform_real_distribution<double>(0, 1)(random));
  };
  trace.requests.push_back({.id = static_cast<std::uint64_t>(request),
                            .method = k > 0 ? "standalone" : "none",
                            .strategy = "greedy",
                            .controller = "fixed",
                            .num_speculative_tokens = k,
                            .prompt_tokens = world.prompt_tokens,
                            .max_new_tokens = world.tokens});
  const auto number = static_cast<int>(trace.requests.size()) - 1;
  std::int64_t pass = trace.rounds.empty() ? 0 : trace.rounds.back().pass + 1;
  trace.rounds.push_back({.request = number,
                          .pass = pass++,
                          .prefill = true,
                          .fed = world.prompt_tokens,
                          .position = world.prompt_tokens,
                          .rows = world.prompt_tokens,
                          .committed = 1,
                          .next = 7,
                          .kind = "plain",
                          .verify_us = 900.0 + 100 * world.prompt_tokens});
  for (int generated = 1; generated < world.tokens;) {
    TracedRound r{.request = number, .pass = pass++, .fed = 1};
    r.position = world.prompt_tokens + generated;
    r.context = r.position - 1;
    r.asked = std::min(k, world.tokens - generated - 1);
    bool wrong = false;
    for (int i = 0; i < r.asked && (wrong || !world.silent(request, generated + i)); ++i) {
      r.drafts.push_back(7);
      wrong |= !world.right(request, generated + i);
      r.accepted += !wrong;
    }
    const auto drafted = static_cast<int>(r.drafts.size());
    r.q.assign(r.drafts.size(), 1);
    r.p.assign(r.drafts.size(), 1);
    if (drafted > 0) r.drafter = "standalone", r.at_once = world.at_once;
    r.kind = drafted == 0 ? "plain" : r.accepted < drafted ? "recovered" : "bonus";
    r.next = 7;
    r.rows = 1 + drafted;
    r.committed = std::min(r.accepted + 1, world.tokens - generated);
    r.draft_us = noisy((world.at_once ? std::min(drafted, 1) : drafted) * world.draft_us);
    r.verify_us = noisy(world.pass_us(r.rows, r.context));
    r.rest_us = noisy(world.rest_us);
    generated += r.committed;
    if (generated >= world.tokens) r.end = "length";
    trace.rounds.push_back(r);
  }
}

// The header and `requests` requests with K = k.
inline RunTrace TraceOf(const TracedWorld& world, int k, int requests = 4) {
  RunTrace trace;
  trace.header = {.version = "0.1.0",
                  .cpu = "made up",
                  .isa = "scalar",
                  .threads = 1,
                  .model = "target.gguf",
                  .model_type = "F32",
                  .draft_model = "draft.gguf",
                  .draft_type = "F32",
                  .method = "standalone",
                  .strategy = "greedy",
                  .controller = "fixed",
                  .num_speculative_tokens = k,
                  .context_size = 4096,
                  .max_sequences = 1};
  for (int i = 0; i < requests; ++i) RunWorld(world, k, i, trace);
  return trace;
}

// Hands a trace to the recorder as an engine would, without distributions.
inline Status Record(const RunTrace& trace, const std::string& path) {
  FORETOKEN_TRY(const auto recorder, RunRecorder::Create(path, trace.header));
  for (const TracedRequest& request : trace.requests)
    recorder->Begin(static_cast<SeqId>(&request - trace.requests.data()), request);
  std::vector<PassCost> costs;
  for (const TracedCost& cost : trace.costs)
    costs.push_back({cost.rows, cost.context, {.median = cost.us}});
  recorder->AddCosts(costs);
  for (const TracedRound& r : trace.rounds) {
    const auto drafted = static_cast<int>(r.drafts.size());
    const round::Verdict verdict{.accepted = r.accepted,
                                 .next = r.next,
                                 .kind = drafted == 0           ? round::NextKind::kPlain
                                         : r.accepted < drafted ? round::NextKind::kRecovered
                                                                : round::NextKind::kBonus};
    recorder->Add({.seq = r.request,
                   .prefill = r.prefill,
                   .fed = r.fed,
                   .position = r.position,
                   .context = r.context,
                   .asked = r.asked,
                   .instant = r.instant,
                   .at_once = r.at_once,
                   .evidence = r.evidence,
                   .drafter = r.drafter,
                   .drafts = r.drafts,
                   .verdict = r.committed > 0 ? &verdict : nullptr,
                   .committed = r.committed,
                   .rest_us = r.rest_us,
                   .end = r.end.c_str()});
    recorder->EndPass({r.rows, r.draft_us, r.verify_us});
  }
  return recorder->Publish();
}

}  // namespace foretoken::trace
