// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/certify_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/input.h"
#include "cli/terminal.h"
#include "draft/methods.h"

namespace foretoken::cli {
namespace {

std::string Head(const Certification& c) {
  const EngineSummary& engine = *c.engine;
  std::string out = fmt::format("model     {}: {}, {}\n", FileName(engine.target.path),
                                engine.target.architecture, engine.target.type);
  out += fmt::format("drafter   {}{}{}\n", engine.method, engine.draft_model ? ": " : "",
                     DraftFileNames(engine));
  out += fmt::format("machine   {}, {} {}\n", engine.isa, engine.threads,
                     engine.threads == 1 ? "thread" : "threads");
  return out;
}

std::string Texts(int differing) {
  return differing == 0 ? "equal" : fmt::format("{} DIFFER", differing);
}

std::string EqualityTable(const Certification& c) {
  std::string out = fmt::format(
      "\nspeculation against plain decoding alone: token ids and log-probabilities, bit by bit;\n"
      "{} {}, {} tokens each at most, seed {}\n"
      "  {:<8} {:>5} {:>3} {:>8} {:>9} {:>9} {:>9}   {}\n",
      c.prompts, c.prompts == 1 ? "prompt" : "prompts", c.request->max_new_tokens, c.request->seed,
      "text", "batch", "K", "texts", "tokens", "drafted", "accepted", "texts are");
  for (const EqualityRow& row : c.equality.rows) {
    const auto rate = row.stats.acceptance_rate();
    out += fmt::format("  {:<8} {:>5} {:>3} {:>8} {:>9} {:>9} {:>9}   {}\n", row.text, row.batch,
                       row.k, row.prompts, row.tokens, row.stats.drafted,
                       rate ? fmt::format("{:.1f} %", 100 * *rate) : "-", Texts(row.differing));
  }
  if (!c.equality.sampled_left_out.empty())
    out += fmt::format("  sampled texts were not compared: {}\n", c.equality.sampled_left_out);
  return out;
}

std::string DrafterTable(const Certification& c) {
  std::string out =
      fmt::format("\n  {:<28} {:>8} {:>9} {:>9}\n", "drafts by", "rounds", "drafted", "accepted");
  for (const auto& [name, count] : c.equality.drafters)
    out +=
        fmt::format("  {:<28} {:>8} {:>9} {:>7.1f} %\n", name, count.rounds, count.drafted,
                    100 * static_cast<double>(count.accepted) / static_cast<double>(count.drafted));
  return out;
}

// The drafters that were chosen by name and drafted nothing.
std::vector<std::string> IdleDrafters(const Certification& c) {
  std::vector<std::string> idle;
  for (const std::string_view method : MethodItems(c.engine->method)) {
    const auto& drafters = c.equality.drafters;
    const bool drafted = std::any_of(drafters.begin(), drafters.end(), [&](const auto& entry) {
      return entry.first == method || DrafterOf(entry.first) == method ||
             DrafterOf(method) == entry.first;
    });
    if (!drafted && method != "portfolio") idle.emplace_back(method);
  }
  return idle;
}

std::string TokenText(const Engine& engine, const std::optional<std::int32_t>& token,
                      float logprob) {
  if (!token) return "the end of the text";
  const std::int32_t id = *token;
  return fmt::format("{} '{}' (log-probability {:a})", id,
                     OnOneLine(engine.Detokenize({&id, 1}, true)), logprob);
}

std::string FirstDifference(const Difference& d, const Engine& engine) {
  return fmt::format(
      "\nfirst difference: {}, {} text, K {}, batch {}: the {} at position {}\n"
      "  plain        {}\n  speculative  {}\n",
      d.origin, d.text, d.k, d.batch, d.what, d.position,
      TokenText(engine, d.plain, d.plain_logprob),
      TokenText(engine, d.speculative, d.speculative_logprob));
}

std::string ComparabilityText(const lab::Comparability& test) {
  if (test.degrees == 0) return "-";
  return fmt::format("{:.1f}/{} p {:.2g}", test.statistic, test.degrees, test.p);
}

std::string DistributionTable(const Certification& c) {
  const DistributionVerdict& distribution = *c.distribution;
  const SamplingParameters& s = c.request->sampling;
  std::string out = fmt::format(
      "\ndistribution of the drawn tokens: {} texts of each kind and context, T {:g}, top-p {:g}, "
      "top-k {}\n"
      "verified by {}; {:.1f} % of the drafts were accepted; negative control: {}\n"
      "  {:<28} {:<8} {:<24} {}\n",
      distribution.samples, s.temperature, s.top_p, s.top_k, distribution.strategy,
      100 * distribution.acceptance_rate, distribution.control, "chi-square/degrees", "tokens",
      "speculation", "control");
  for (const DistributionTest& test : distribution.tests) {
    const std::string& origin = test.origin;
    out += fmt::format("  {:<28} {:<8} {:<24} {}\n",
                       origin.size() <= 28 ? origin : "..." + origin.substr(origin.size() - 25),
                       test.tokens, ComparabilityText(test.speculation),
                       ComparabilityText(test.control));
  }
  out +=
      fmt::format("  a test fails below p = {:.2g} (0.001 for all together)\n", distribution.level);
  return out;
}

// Lines of at most 100 columns; all but the first are indented.
std::string Wrapped(std::string text) {
  constexpr std::size_t kWidth = 100;
  std::size_t begin = 0;
  while (text.size() - begin > kWidth) {
    const std::size_t space = text.rfind(' ', begin + kWidth);
    text.replace(space, 1, "\n  ");
    begin = space + 1;
  }
  return text + "\n";
}

bool Tested(const Certification& c, std::string_view strategy) {
  const bool texts = strategy == c.equality.greedy_strategy || strategy == c.equality.strategy;
  const bool drawn =
      c.distribution && strategy == c.distribution->strategy && c.distribution->control_failed();
  return texts || drawn;
}

std::string Verdict(const Certification& c) {
  if (c.certificate() == Certificate::kDiffers) {
    // Only synthetic acceptance may change a text of temperature 0.
    const bool lossy = c.equality.first && c.equality.first->text == "greedy"
                           ? c.equality.greedy_strategy != "greedy"
                           : !c.engine->lossless;
    return c.equality.first ? fmt::format("DIFFERENT: speculation changed a text{}\n",
                                          lossy ? ", as this strategy may" : "; please report it")
                            : fmt::format("DIFFERENT: speculation changed the distribution{}\n",
                                          lossy ? ", as this strategy may" : "; please report it");
  }
  const auto list = [](const char* verdict, const std::vector<std::string>& parts) {
    return parts.empty() ? "" : Wrapped(fmt::format("{}{}", verdict, fmt::join(parts, "; ")));
  };
  const bool exact = c.certificate() == Certificate::kExact;
  if (c.equality.drafted() == 0) return "UNTESTED: no token was drafted for these prompts\n";
  return list(exact ? "EXACT: " : "the same: ", c.proved()) +
         list(exact ? "not tested: " : "UNTESTED: ", c.not_proved());
}

}  // namespace

Certificate Certification::certificate() const {
  if (equality.first || (distribution && !distribution->passed())) return Certificate::kDiffers;
  const bool blind = distribution && !distribution->control_failed();
  if (equality.drafted() == 0 || blind || !Tested(*this, strategy)) return Certificate::kUntested;
  return Certificate::kExact;
}

std::vector<std::string> Certification::proved() const {
  std::vector<std::string> parts;
  if (equality.first || equality.drafted() == 0) return parts;
  parts.emplace_back("every text of temperature 0 is plain decoding's, bit for bit (greedy)");
  const float t = request->sampling.temperature;
  if (equality.sampled_left_out.empty())
    parts.push_back(fmt::format("every text of temperature {:g} too, with one seed ({})", t,
                                equality.strategy));
  if (distribution && distribution->passed() && distribution->control_failed())
    parts.push_back(
        fmt::format("and so is the distribution of its tokens ({}); the control "
                    "failed, as it must",
                    distribution->strategy));
  return parts;
}

std::vector<std::string> Certification::not_proved() const {
  std::vector<std::string> parts;
  if (distribution && !distribution->control_failed())
    parts.push_back(fmt::format(
        "the control's error does not show in {} texts either: the drafter is too good, or the "
        "distribution too narrow; raise --samples or --temp, or give other prompts",
        distribution->samples));
  else if (!Tested(*this, strategy))
    parts.push_back(fmt::format(
        "'{}', which verifies texts of temperature {:g} here: only their distribution shows "
        "whether it is exact; add --stochastic",
        strategy, request->sampling.temperature));
  else if (engine->strategy != "auto" && !Tested(*this, engine->strategy))
    parts.push_back(fmt::format(
        "'{}' itself: at temperature 0 every strategy is greedy; raise --temp", engine->strategy));
  if (const auto idle = IdleDrafters(*this); equality.drafted() > 0 && !idle.empty())
    parts.push_back(
        fmt::format("drafts by {}: there were none for these prompts", fmt::join(idle, ", ")));
  return parts;
}

const char* Name(Certificate certificate) {
  switch (certificate) {
    case Certificate::kExact:
      return "exact";
    case Certificate::kDiffers:
      return "differs";
    case Certificate::kUntested:
      return "untested";
  }
  return "";
}

std::string CertificationTables(const Certification& c, const Engine& engine) {
  std::string out = Head(c) + EqualityTable(c);
  if (!c.equality.drafters.empty()) out += DrafterTable(c);
  if (c.equality.first) out += FirstDifference(*c.equality.first, engine);
  if (c.distribution) out += DistributionTable(c);
  return out + "\n" + Verdict(c);
}

}  // namespace foretoken::cli
