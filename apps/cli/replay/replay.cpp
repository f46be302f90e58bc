// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/replay/replay_report.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/flag_set.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

constexpr int kMostTokens = 64, kAllTokens = 8;  // `all` is 0 to 8

struct ReplaySettings {
  std::string file;
  std::optional<int> num_speculative_tokens;  // none: all
  std::string controller;                     // "": all
  bool json = false;
};

settings::FlagSet ReplayFlags(ReplaySettings& s) {
  settings::FlagSet flags(
      "replay FILE [flags]",
      "Computes from the trace of a run how fast it would have been with other draft lengths and "
      "controllers. No model is needed. generate, chat and bench write traces with --record FILE.");
  flags.SetPositional("FILE", [&s](const std::string& path) -> Status {
    if (!s.file.empty() && s.file != path)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: a second trace beside {}; name one", path, s.file));
    s.file = path;
    return {};
  });
  flags.Add(
      {"Flags",
       {{{"--num-speculative-tokens", "--spec-draft-n-max", "--draft-max", "--draft", "--gamma"},
         "K",
         fmt::format("drafts of a round, or the most that a controller may choose, 0 to {}; "
                     "default all: 0 to {}, and each controller",
                     kMostTokens, kAllTokens),
         [&s](const std::string& text) -> Status {
           if (text == "all") return {};
           return settings::StoreInteger(s.num_speculative_tokens, 0, kMostTokens)(text);
         }},
        {{"--lookahead"},
         "NAME",
         "only this controller: fixed, ewma, heuristic or cost-model",
         settings::StoreText(s.controller)},
        {{"--json"}, "", "one JSON object on standard output", settings::StoreTrue(s.json)}}});
  flags.SetExamples(
      {"foretoken generate -p \"Once upon a time\" --lookahead fixed --record run.jsonl",
       "foretoken replay run.jsonl"});
  return flags;
}

// Plain decoding first; measured settings are among them.
std::vector<ReplayOptions> Choices(const ReplaySettings& s,
                                   const std::vector<MeasuredSetting>& measured) {
  std::vector<ReplayOptions> choices = {{.num_speculative_tokens = 0}};
  const auto add = [&choices](const std::string& controller, int k) {
    const auto same = [&](const ReplayOptions& o) {
      return o.num_speculative_tokens == k && (k == 0 || o.controller == controller);
    };
    if (std::none_of(choices.begin(), choices.end(), same))
      choices.push_back({.num_speculative_tokens = k, .controller = controller});
  };
  const std::string fixed = s.controller.empty() ? "fixed" : s.controller;
  const int most = s.num_speculative_tokens.value_or(kAllTokens);
  if (fixed == "fixed")
    for (int k = s.num_speculative_tokens.value_or(0); k <= most; ++k) add(fixed, k);
  for (const char* controller : {"ewma", "heuristic", "cost-model"})
    if (s.controller.empty() || s.controller == controller) add(controller, most);
  if (fixed != "fixed") add(fixed, most);  // another controller is an error of the replay
  const bool all = s.controller.empty() && !s.num_speculative_tokens;
  for (const MeasuredSetting& m : measured)
    if (all && m.controller != "batch-size") add(m.controller, m.num_speculative_tokens);
  return choices;
}

Result<int> ReplayAll(const ReplaySettings& s) {
  FORETOKEN_TRY(const RunTrace trace, LoadTrace(s.file));
  ReplayReport report{.trace = &trace, .measured = MeasuredSettings(trace), .rows = {}};
  for (const ReplayOptions& options : Choices(s, report.measured)) {
    FORETOKEN_TRY(ReplayResult result, Replay(trace, options));
    report.rows.push_back({options, std::move(result)});
  }
  report.plain = report.rows.front().result.tally.tokens_per_second();
  Output output;
  output.Write(s.json ? ReplayJson(report) : ReplayTable(report));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return kDone;
}

Result<int> RunReplay(ReplaySettings& settings) {
  if (settings.file.empty())
    return InvalidArgument("replay: no trace is named; give the FILE that --record wrote");
  return ReplayAll(settings);
}

}  // namespace

extern const Verb kReplayVerb = MakeVerb<ReplayFlags, RunReplay>(
    "replay", "tells how fast a recorded run would have been with other drafts");

}  // namespace foretoken::cli
