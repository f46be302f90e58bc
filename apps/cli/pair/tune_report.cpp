// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/figure.h"
#include "cli/input.h"
#include "cli/pair/tune_trials.h"

namespace foretoken::cli {
namespace {

std::string FileOf(const TunedDrafter& drafter) {
  if (!drafter.self_draft.empty()) return fmt::format("a copy in {}", drafter.self_draft);
  const std::string name = FileName(drafter.file);
  return name.size() <= 32 ? name : "..." + name.substr(name.size() - 29);
}

std::string Interval(const Spread& s) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", s.median, s.least, s.most);
}

std::string PassTable(const Tuning& tuning) {
  std::string out =
      fmt::format("\npasses, microseconds ({}, {} {})\n  {:>7}", tuning.isa, tuning.threads,
                  tuning.threads == 1 ? "thread" : "threads", "context");
  int context = -1;
  for (const auto& entry : lab::PassesOf(tuning.measured, tuning.context))
    out += fmt::format("{:>8}", fmt::format("{} {}", entry.first, entry.first == 1 ? "row" : ""));
  for (const PassCost& cost : tuning.measured.target) {
    if (cost.context != context) out += fmt::format("\n  {:>7}", context = cost.context);
    out += fmt::format("{:>8}", Figure(cost.us.median, 4));
  }
  return out + "\n";
}

std::string DrafterTable(const Tuning& tuning) {
  std::string out = fmt::format("\ndrafters\n  {:<11} {:<32} {:>8} {:>9} {:>9} {:>7} {:>10}\n", "",
                                "file", "us/draft", "drafted", "accepted", "best K", "estimate");
  for (const TunedDrafter& drafter : tuning.drafters) {
    const auto rate = drafter.estimate.stats.acceptance_rate();
    out += fmt::format("  {:<11} {:<32} {:>8} {:>9} {:>9} {:>7} {:>9.2f}x\n", drafter.method,
                       FileOf(drafter), Figure(drafter.estimate.prices.draft),
                       drafter.estimate.stats.drafted,
                       rate ? fmt::format("{:.1f} %", 100 * *rate) : "-", drafter.estimate.best.k,
                       drafter.estimate.best.speedup);
  }
  return out;
}

std::string TrialTable(const Tuning& tuning) {
  if (tuning.trials.empty()) return "\nby its estimate no drafter pays, so none was run\n";
  std::string out = fmt::format(
      "\nrun beside plain decoding ({} tokens/s)\n"
      "  {:<11} {:<32} {:<11} {:>3} {:>10} {:>18}\n",
      Figure(tuning.plain_tokens_per_second.median, 4), "", "file", "controller", "K", "tokens/s",
      "speed-up");
  for (const TuneTrial& trial : tuning.trials) {
    const TunedDrafter& drafter = tuning.drafters[trial.drafter];
    out += fmt::format("  {:<11} {:<32} {:<11} {:>3} {:>10} {:>18}\n", drafter.method,
                       FileOf(drafter), trial.controller, trial.k,
                       Figure(trial.tokens_per_second().median, 4), Interval(trial.speedup()));
  }
  return out;
}

std::string Recommendation(const Tuning& tuning) {
  if (!tuning.recommended)
    return "recommended: plain decoding (--spec-type none); nothing was clearly faster\n";
  const TuneTrial& best = *tuning.recommended;
  const TunedDrafter& drafter = tuning.drafters[best.drafter];
  return fmt::format(
      "recommended: {}--spec-type {}{} --lookahead {} --num-speculative-tokens {}\n"
      "             speed-up {} in runs of its own\n",
      drafter.file.empty() ? "" : fmt::format("-md {} ", drafter.file), drafter.method,
      drafter.self_draft.empty() ? "" : fmt::format(" --self-draft {}", drafter.self_draft),
      best.controller, best.k, Interval(best.speedup()));
}

}  // namespace

std::string TuningTables(const Tuning& tuning, const Profile& profile, const std::string& path) {
  std::string notices;
  for (const std::string& notice : tuning.notices) notices += notice + "\n";
  return fmt::format("machine   {}\nmodel     {}\n", profile.machine.cpu, profile.target.file) +
         PassTable(tuning) + DrafterTable(tuning) + notices + TrialTable(tuning) + "\n" +
         Recommendation(tuning) +
         fmt::format("profile: {} (--profile drafts in this way where no flag says another)\n",
                     path);
}

}  // namespace foretoken::cli
