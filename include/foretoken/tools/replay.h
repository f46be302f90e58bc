// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/replay.h: the trace of a run, and how fast the same texts would have been with another
// draft length or controller, without the models.
//
//   auto trace = foretoken::LoadTrace("run.jsonl");  // EngineOptions.record wrote it
//   for (int k = 0; k <= 8; ++k)
//     std::cout << k << ": " << foretoken::Replay(*trace, {.num_speculative_tokens = k})
//                                   ->tally.tokens_per_second() << '\n';
//
// A replay goes over the recorded texts round by round. Whether a draft is accepted depends only on
// the text before it. So where the recording verified a position, that verdict counts. The few
// other positions (behind drafts accepted whole, after plain rounds) are decided at random with the
// recorded rates, and a position is always decided in the same way. A portfolio is replayed as one
// drafter. Times come from the recorded rounds: medians by drafts and rows, straight lines between
// and beyond them, and a slope along the context.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

// The run as a whole.
struct TraceHeader {
  std::string version;  // the version of foretoken that wrote it
  std::string cpu, isa;
  int threads = 0;
  std::string model, model_type;
  std::string draft_model, draft_type;  // "" if there is none
  std::string method, strategy, controller;
  int num_speculative_tokens = 0;
  int context_size = 0, max_sequences = 1;
};

struct TracedRequest {
  std::uint64_t id = 0, seed = 0;  // as the caller gave them; requests may share them
  std::string method, strategy, controller;
  int num_speculative_tokens = 0;  // K, or the most for the controller; 0: plain decoding
  double temperature = 0, top_p = 1, min_p = 0;
  int top_k = 0;
  int prompt_tokens = 0;
  int max_new_tokens = 0;  // as many as the request and the context have room for

  bool drafts() const { return num_speculative_tokens > 0; }
};

// What one target pass did for one request.
struct TracedRound {
  int request = 0;        // index into RunTrace::requests
  std::int64_t pass = 0;  // rounds of one pass share it, and its rows and times
  bool prefill = false;   // it had prompt rows
  int fed = 0;            // tokens of the text in the pass
  int position = 0;       // of the first draft, or of the token that follows
  int context = 0;        // positions in the cache before the pass
  int others = 0;         // other sequences that decoded in the same pass
  int rows = 0;           // of the whole pass
  // Drafts that the controller asked for; a drafter may have fewer. 0 if it asked for none.
  int asked = 0;
  std::string drafter;   // its method; "" if nothing was drafted
  bool instant = false;  // its drafts were made before the controller chose how many to verify
  bool at_once = false;  // its drafter makes all drafts of a round in one pass
  int evidence = 0;      // how strongly the text supported them, 0 to 3
  std::vector<std::int32_t> drafts;
  // For each draft: the probability it was drawn with, 1 if the drafter was certain; and its
  // probability in the target's processed distribution, given the drafts before it. At temperature
  // 0 that is 1 for the most probable token and 0 for the others.
  std::vector<float> q, p;
  int accepted = 0;        // verdict, also where the text ends within it
  int committed = 0;       // tokens, cut by the request's end; 0 during the prefill
  std::int32_t next = -1;  // the target's token; -1 during the prefill
  std::string kind;        // of that token: "plain", "recovered", "bonus"
  // The times of the whole pass. rest_us runs from the end of the pass until this request's part is
  // verified and committed.
  double draft_us = 0, verify_us = 0, rest_us = 0;
  std::string end;  // "stop", "length", "cancelled"; "": it continues
};

// A pass of the target that was timed separately from the texts (Engine::Measure).
struct TracedCost {
  int rows = 0, context = 0;
  double us = 0;
};

struct RunTrace {
  TraceHeader header;
  std::vector<TracedRequest> requests;
  std::vector<TracedRound> rounds;  // in order
  std::vector<TracedCost> costs;
};

// Reads a trace and checks all of it: every value is in its range, and every round begins where the
// one before it ended. Errors: kNotFound, kIo, kTooLarge (more than 256 MiB), kInvalidFile with the
// line.
[[nodiscard]] Result<RunTrace> LoadTrace(const std::string& path);
// Reads a trace from a file's text; errors contain `name`.
[[nodiscard]] Result<RunTrace> ParseTrace(std::string_view text, const std::string& name);

// Decoding of some requests, counted over passes without prompt rows.
struct ReplayTally {
  std::int64_t rounds = 0, draft_rounds = 0, drafted = 0, accepted = 0;
  std::int64_t tokens = 0;
  double us = 0;
  std::vector<std::int64_t> k_histogram;  // [m]: rounds that drafted m tokens

  double tokens_per_second() const { return us > 0 ? 1e6 * static_cast<double>(tokens) / us : 0; }
  std::optional<double> acceptance_rate() const {
    if (drafted == 0) return std::nullopt;
    return static_cast<double>(accepted) / static_cast<double>(drafted);
  }
  double tokens_per_round() const {
    return rounds > 0 ? static_cast<double>(tokens) / static_cast<double>(rounds) : 0;
  }
};

// Measurements with one setting. A pass counts if all its requests have that setting.
struct MeasuredSetting {
  std::string method, controller;  // "none", "" for plain decoding
  int num_speculative_tokens = 0;
  int requests = 0;
  ReplayTally tally;
};
std::vector<MeasuredSetting> MeasuredSettings(const RunTrace& trace);

struct ReplayOptions {
  int num_speculative_tokens = 4;  // [0, 64]: K, or the most that a controller may choose
  std::string controller = "fixed";
  AdaptiveLookaheadConfig adaptive_lookahead = {};
  std::vector<BatchDraftLength> num_speculative_tokens_per_batch_size = {};
  std::uint64_t seed = 1;  // for positions that are decided at random
};

struct ReplayResult {
  ReplayTally tally;
  std::int64_t verified = 0;   // positions whose verdict was needed
  std::int64_t at_random = 0;  // those of them that were decided at random
  // Recorded time over the time of the fitted tables; all times are scaled by it.
  double recorded_over_fit = 1;
  // Measurements with the same setting, if the trace has any.
  std::optional<ReplayTally> measured;
};

// Replays all requests that drafted. Errors: kInvalidArgument (an option out of its range; a trace
// without drafts).
[[nodiscard]] Result<ReplayResult> Replay(const RunTrace& trace, const ReplayOptions& options);

}  // namespace foretoken
