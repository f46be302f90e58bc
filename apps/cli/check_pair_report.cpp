// SPDX-License-Identifier: Apache-2.0
#include "cli/check_pair_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

constexpr double kWorthwhile = 1.05, kEven = 0.97;

double Mega(std::int64_t n) {
  return static_cast<double>(n) / 1e6;
}

std::string FileLine(const char* what, const FileFacts& facts) {
  return fmt::format("{:<9} {}: {}, {}, {:.4g} million parameters, file {:.4g} MB\n", what,
                     FileName(facts.path), OnOneLine(facts.architecture), facts.type,
                     Mega(facts.parameters), Mega(facts.bytes));
}

std::string VocabularyLines(const VocabularyDifference& v) {
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
    return fmt::format("  {:<7} weights {:.4g} MB, cache {:.4g} MB for {} tokens\n", what,
                       Mega(model.weight_bytes), Mega(model.cache_bytes), model.context_size);
  };
  std::string out = "\nmemory\n" + line("model", engine.target);
  if (engine.draft) out += line("drafter", *engine.draft);
  return out;
}

std::string CostLines(const PairMeasurement& m) {
  const double one = m.prices.Pass(1);
  std::string out =
      fmt::format("\ncosts here ({}, {} {}), microseconds\n  {:<14} {:>8} {:>12}\n",
                  m.engine->summary().isa, m.engine->summary().threads,
                  m.engine->summary().threads == 1 ? "thread" : "threads", "", "", "of one row");
  for (const auto& [rows, us] : m.prices.pass)
    out += fmt::format("  pass, {:>2} {:<5} {:>8.4g} {:>11.2f}x\n", rows,
                       rows == 1 ? "row" : "rows", us, us / one);
  out += fmt::format("  {:<14} {:>8.4g} {:>11.2f}x\n", "one more draft", m.prices.draft,
                     m.prices.draft / one);
  return out;
}

std::string AcceptanceLines(const PairCheck& check) {
  const PairMeasurement& m = *check.measured;
  std::string out = fmt::format(
      "\ndrafts    {} {}, T {:g}: {} drafted, {} accepted; the probability that all up to each "
      "are\n  ",
      check.prompts, check.prompts == 1 ? "prompt" : "prompts", check.request->sampling.temperature,
      m.speculative.stats.drafted, m.speculative.stats.accepted);
  for (std::size_t i = 0; i < m.survival.size(); ++i)
    out += fmt::format("  {}: {:.1f} %", i + 1, 100 * m.survival[i]);
  out += "\nspeed-up  by these costs and drafts, over plain decoding\n  ";
  for (int k = 1; k <= static_cast<int>(m.survival.size()); ++k)
    out += fmt::format("  K {}: {:.2f}", k, Speedup(m.prices, m.survival, k));
  out += "\n";
  if (m.break_even)
    out += fmt::format(
        "          it pays from {:.1f} % accepted drafts on; here the first is accepted in "
        "{:.1f} %\n",
        100 * *m.break_even, m.survival.empty() ? 0.0 : 100 * m.survival[0]);
  return out;
}

}  // namespace

std::string PairCheck::Recommendation() const {
  if (!obstacle.empty()) return fmt::format("This pair does not work: {}", obstacle);
  const PairMeasurement& m = *measured;
  if (m.survival.empty()) return "Nothing was drafted for these prompts: give others.";
  const double share = m.prices.draft / m.prices.Pass(1);
  if (!m.break_even)
    return fmt::format(
        "Do not use this draft here: a draft token costs {:.0f} % of a pass, so that not even "
        "drafts that are always right would pay. A much smaller draft might.",
        100 * share);
  if (m.best.speedup >= kWorthwhile)
    return fmt::format(
        "Use it, with K {}: about {:.2f} times the speed of plain decoding for texts like these.",
        m.best.k, m.best.speedup);
  if (m.best.k > 0 && m.best.speedup > kEven)
    return fmt::format(
        "It hardly pays for texts like these: {:.2f} times plain decoding at K {}. Try a draft "
        "that agrees more, or a smaller one.",
        m.best.speedup, m.best.k);
  return fmt::format(
      "Do not use it for texts like these: a draft must be accepted in {:.0f} %, and the first is "
      "in {:.0f} %. A draft that agrees more, or a smaller one, might pay.",
      100 * *m.break_even, 100 * m.survival[0]);
}

std::string PairTables(const PairCheck& check) {
  std::string out = FileLine("model", check.fit.target) + FileLine("draft", check.fit.draft) +
                    VocabularyLines(check.fit.vocabulary);
  if (check.measured)
    out += MemoryLines(check.measured->engine->summary()) + CostLines(*check.measured) +
           AcceptanceLines(check);
  return out + "\n" + check.Recommendation() + "\n";
}

}  // namespace foretoken::cli
