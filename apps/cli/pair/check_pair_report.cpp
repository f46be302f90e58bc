// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/check_pair_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/figure.h"
#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

constexpr int kPerLine = 8;  // draft lengths that a line shows

constexpr double kWorthwhileSpeedup = 1.05;

std::string Mega(std::int64_t n) {
  return Figure(static_cast<double>(n) / 1e6, 4);
}

std::string FileLine(const char* what, const lab::FileFacts& facts) {
  return fmt::format("{:<9} {}: {}, {}, {} million parameters, file {} MB\n", what,
                     FileName(facts.path), OnOneLine(facts.architecture), facts.type,
                     Mega(facts.parameters), Mega(facts.bytes));
}

std::string LossLines(const TokenMap& map, const std::optional<lab::VocabularyLoss>& loss) {
  const auto pairs = static_cast<double>(map.pairs.size());
  std::string out = fmt::format(
      "tokens    {} and {} of two vocabularies; {} ({:.2f} % of the model's) stand for the\n"
      "          same bytes in both, the others are never drafted\n",
      map.target, map.draft, map.pairs.size(), 100 * pairs / map.target);
  if (!loss) return out;
  out += fmt::format(
      "          in these texts {:.2f} % of the tokens have no counterpart: at most {:.2f} % of "
      "the\n"
      "          first drafts are accepted\n",
      100 * (1 - loss->MostAccepted()), 100 * loss->MostAccepted());
  return out +
         fmt::format(
             "          the draft gives {:.2f} % of its probability to tokens without one, and\n"
             "          reads {:.2f} tokens for each of the model's\n",
             100 * loss->MeanOutside(), loss->OwnTokens());
}

std::string VocabularyLines(const PairCheck& check) {
  if (check.fit.map) return LossLines(*check.fit.map, check.loss);
  const VocabularyDifference& v = check.fit.vocabulary;
  if (v.same()) return fmt::format("tokens    the same {} in both\n", v.target);
  std::string out = fmt::format("tokens    {} and {}; {} ({:.2f} % of the model's) are shared{}\n",
                                v.target, v.draft, v.shared(), 100.0 * v.shared() / v.target,
                                v.shared() < v.target ? ", the others are never drafted" : "");
  if (!v.differing.empty())
    out += fmt::format("          {} of other texts, first\n", v.differing.size());
  for (const std::string& first : v.first) out += fmt::format("          {}\n", OnOneLine(first));
  return out;
}

std::string MemoryLines(const EngineSummary& engine) {
  const auto line = [](const char* what, const ModelSummary& model) {
    return fmt::format("  {:<7} weights {} MB, cache {} MB for {} tokens\n", what,
                       Mega(model.weight_bytes), Mega(model.cache_bytes), model.context_size);
  };
  std::string out = "\nmemory\n" + line("model", engine.target);
  if (engine.draft_model) out += line("drafter", *engine.draft_model);
  return out;
}

std::string CostLines(const PairMeasurement& m) {
  const lab::RoundPrices& prices = m.estimate.prices;
  const double one = prices.Pass(1);
  std::string out =
      fmt::format("\ncosts in these texts ({}, {} {}), microseconds\n  {:<14} {:>8} {:>12}\n",
                  m.engine->summary().isa, m.engine->summary().threads,
                  m.engine->summary().threads == 1 ? "thread" : "threads", "", "", "of one row");
  for (const auto& [rows, us] : prices.pass)
    out += fmt::format("  pass, {:>2} {:<5} {:>8} {:>11.2f}x\n", rows, rows == 1 ? "row" : "rows",
                       Figure(us, 4), us / one);
  out += fmt::format("  {:<14} {:>8} {:>11.2f}x\n", "begin to draft", Figure(prices.begin, 4),
                     prices.begin / one);
  out += fmt::format("  {:<14} {:>8} {:>11.2f}x\n", "one more draft", Figure(prices.draft, 4),
                     prices.draft / one);
  return out + fmt::format("  {:<14} {:>8} {:>11.2f}x\n", "rest of a round", Figure(prices.rest, 4),
                           prices.rest / one);
}

// How many drafts are accepted, and how many must be.
std::string AcceptanceLine(const PairCheck& check) {
  const PairEstimate& e = check.measured->estimate;
  std::string out =
      fmt::format("drafts    {} of {} accepted in {} {}, T {:g}", e.stats.accepted, e.stats.drafted,
                  check.prompts, check.prompts == 1 ? "prompt" : "prompts",
                  check.request->sampling.temperature);
  if (!e.survival.empty()) out += fmt::format("; the first in {:.1f} %", 100 * e.survival[0]);
  if (e.break_even) out += fmt::format("; it pays from {:.1f} % on", 100 * *e.break_even);
  return out + "\n";
}

std::string EstimateLines(const PairEstimate& e) {
  std::string out = "\nthe probability that all drafts up to each are accepted";
  for (std::size_t i = 0; i < e.survival.size(); ++i)
    out += fmt::format("{}  {}: {:.1f} %", i % std::size_t{kPerLine} == 0 ? "\n  " : "", i + 1,
                       100 * e.survival[i]);
  out += "\nestimates of fixed lengths by these costs and drafts, over plain decoding";
  for (int k = 1; k <= e.shares.most(); ++k)
    out += fmt::format("{}  K {}: {:.2f}", (k - 1) % kPerLine == 0 ? "\n  " : "", k,
                       lab::Speedup(e.prices, e.shares, k));
  return out + "\n";
}

std::string Times(const Spread& s) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", s.median, s.least, s.most);
}

std::string RunLine(const std::string& what, const Spread& rate, const Spread* speedup) {
  const std::string rates = fmt::format("{} ({}-{})", Figure(rate.median, 4), Figure(rate.least, 4),
                                        Figure(rate.most, 4));
  const std::string times = speedup != nullptr ? fmt::format(" {:>20}", Times(*speedup) + "x") : "";
  return fmt::format("  {:<22} {:>22}{}\n", what, rates, times);
}

std::string RunLines(const PairCheck& check) {
  const PairMeasurement& m = *check.measured;
  std::string out =
      fmt::format("\nmeasured, tokens/s: {} tokens at most, {} in turn, median (least-most)\n",
                  check.request->max_new_tokens,
                  check.repeats == 1 ? "once" : fmt::format("{} times", check.repeats));
  out += RunLine("plain", m.as_set.plain, nullptr) +
         RunLine(fmt::format("{}, K {}", m.controller, m.most), *m.as_set.speculative,
                 &*m.as_set.speedup);
  if (m.best)
    out += RunLine(fmt::format("fixed, K {}", m.estimate.best.k), *m.best->speculative,
                   &*m.best->speedup);
  return out;
}

}  // namespace

std::string PairCheck::Recommendation() const {
  if (!obstacle.empty()) return fmt::format("This pair does not work: {}", obstacle);
  const PairMeasurement& m = *measured;
  if (m.estimate.survival.empty()) return "Nothing was drafted for these prompts: give others.";
  const Spread& speedup = m.BestIsFaster() ? *m.best->speedup : *m.as_set.speedup;
  const std::string how =
      m.BestIsFaster()
          ? fmt::format("--lookahead fixed --num-speculative-tokens {}", m.estimate.best.k)
          : fmt::format("--lookahead {}", m.controller);
  const std::string gain = fmt::format("{} times the speed of plain decoding", Times(speedup));
  if (speedup.median >= kWorthwhileSpeedup)
    return fmt::format("Use it, with {}: {} for texts like these.", how, gain);
  if (!m.estimate.break_even)
    return fmt::format(
        "Do not use this draft here: a draft token costs {:.0f} % of a pass, so that not even "
        "drafts that are always right would pay. A much smaller draft might.",
        100 * m.estimate.prices.draft / m.estimate.prices.Pass(1));
  if (m.estimate.best.k > 0)
    return fmt::format(
        "It hardly pays for texts like these: {} with {}. Try a draft that agrees more, or a "
        "smaller one.",
        gain, how);
  return fmt::format(
      "Do not use it for texts like these: a draft must be accepted in {:.0f} %, and the first is "
      "in {:.0f} %. A draft that agrees more, or a smaller one, might pay.",
      100 * *m.estimate.break_even, 100 * m.estimate.survival[0]);
}

std::string PairTables(const PairCheck& check, bool all) {
  std::string out = FileLine("model", check.fit.target);
  if (check.fit.draft) out += FileLine("draft", *check.fit.draft) + VocabularyLines(check);
  if (check.measured) {
    const PairMeasurement& m = *check.measured;
    out += AcceptanceLine(check);
    if (all) out += MemoryLines(m.engine->summary()) + CostLines(m) + EstimateLines(m.estimate);
    out += RunLines(check);
  }
  return out + "\n" + check.Recommendation() + "\n";
}

}  // namespace foretoken::cli
