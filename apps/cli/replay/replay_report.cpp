// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/replay_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

std::string NameOf(const std::string& controller, int k) {
  if (k == 0) return "plain";
  return fmt::format(fmt::runtime(controller == "fixed" ? "{} K {}" : "{}, at most {}"), controller,
                     k);
}

std::string Percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::string Head(const ReplayReport& report) {
  const TraceHeader& header = report.trace->header;
  std::string out = fmt::format(
      "recorded  {} on {}, {}, {} {}\n", OnOneLine(FileName(header.model)),
      header.cpu.empty() ? "an unnamed CPU" : OnOneLine(header.cpu), OnOneLine(header.isa),
      header.threads, header.threads == 1 ? "thread" : "threads");
  out +=
      fmt::format("          drafter {}{}\n", OnOneLine(header.method),
                  header.draft_model.empty() ? "" : ", " + OnOneLine(FileName(header.draft_model)));
  for (const MeasuredSetting& m : report.measured)
    out += fmt::format(
        "measured  {}: {:.1f} tokens/s; {} requests, {} tokens in {} rounds, {} accepted\n",
        m.num_speculative_tokens == 0 ? "plain"
                                      : NameOf(OnOneLine(m.controller), m.num_speculative_tokens),
        m.tally.tokens_per_second(), m.requests, m.tally.tokens, m.tally.rounds,
        Percent(m.tally.acceptance_rate()));
  return out;
}

// The share of verdicts that the recording does not have, for the row with the most of them.
std::string Foot(const ReplayReport& report) {
  double share = 0;
  for (const ReplayRow& row : report.rows)
    if (row.result.verified > 0)
      share = std::max(share, static_cast<double>(row.result.at_random) /
                                  static_cast<double>(row.result.verified));
  return fmt::format(
      "\n* the recorded setting. Verdicts that the trace lacks are decided at random, at most "
      "{:.1f} "
      "%.\n",
      100 * share);
}

std::string Line(const ReplayReport& report, const ReplayRow& row) {
  const ReplayTally& tally = row.result.tally;
  const auto& measured = row.result.measured;
  const double predicted = tally.tokens_per_second();
  std::string out = fmt::format("{:<24}{} {:>7} {:>8} {:>9} {:>8} {:>7.2f} {:>10.1f} {:>8.2f}x",
                                row.name(), measured ? '*' : ' ', tally.rounds, tally.drafted,
                                tally.accepted, Percent(tally.acceptance_rate()),
                                tally.tokens_per_round(), predicted, predicted / report.plain);
  if (measured) out += fmt::format(" {:>8.1f}", measured->tokens_per_second());
  return out + "\n";
}

}  // namespace

std::string ReplayRow::name() const {
  return NameOf(options.controller, options.num_speculative_tokens);
}

std::string ReplayTable(const ReplayReport& report) {
  std::string out = Head(report);
  out += fmt::format("\n{:<25} {:>7} {:>8} {:>9} {:>8} {:>7} {:>10} {:>9} {:>8}\n", "replayed",
                     "rounds", "drafted", "accepted", "rate", "/round", "tokens/s", "of plain",
                     "measured");
  for (const ReplayRow& row : report.rows) out += Line(report, row);
  return out + Foot(report);
}

}  // namespace foretoken::cli
