// SPDX-License-Identifier: Apache-2.0
#include "cli/certify_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

std::string Head(const Certification& c) {
  const EngineSummary& engine = *c.engine;
  std::string out = fmt::format("model     {}: {}, {}\n", FileName(engine.target.path),
                                engine.target.architecture, engine.target.type);
  out += fmt::format("drafter   {}{}{}\n", engine.method, engine.draft ? ": " : "",
                     engine.draft ? FileName(engine.draft->path) : "");
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

std::string Result(const Comparability& test) {
  if (test.degrees == 0) return "-";
  return fmt::format("{:.1f}/{} p {:.2g}", test.statistic, test.degrees, test.p);
}

std::string LawTable(const Certification& c) {
  const LawVerdict& law = *c.law;
  const SamplingParameters& s = c.request->sampling;
  std::string out = fmt::format(
      "\nlaw of the drawn tokens: {} texts of each kind and context, T {:g}, top-p {:g}, top-k {}\n"
      "judged by {}; {:.1f} % of the drafts were accepted; negative control: {}\n"
      "  {:<28} {:<8} {:<24} {}\n",
      law.samples, s.temperature, s.top_p, s.top_k, law.strategy, 100 * law.acceptance_rate,
      law.control, "chi-square/degrees", "tokens", "speculation", "control");
  for (const LawTest& test : law.tests) {
    const std::string& origin = test.origin;
    out += fmt::format("  {:<28} {:<8} {:<24} {}\n",
                       origin.size() <= 28 ? origin : "..." + origin.substr(origin.size() - 25),
                       test.tokens, Result(test.speculation), Result(test.control));
  }
  out += fmt::format("  a test fails below p = {:.2g} (0.001 for all together)\n", law.level);
  return out;
}

std::string Verdict(const Certification& c) {
  if (c.certificate() == Certificate::kDiffers) {
    const bool lossy = !c.engine->lossless;
    return c.equality.first ? fmt::format("DIFFERENT: speculation changed a text{}\n",
                                          lossy ? ", as this strategy may" : "; please report it")
                            : fmt::format("DIFFERENT: speculation changed the law{}\n",
                                          lossy ? ", as this strategy may" : "; please report it");
  }
  if (c.equality.drafted() == 0) return "UNTESTED: no token was drafted for these prompts\n";
  if (!c.law && !c.engine->lossless)
    return fmt::format(
        "UNTESTED: greedy texts are the same, but '{}' may change the law of others; add "
        "--stochastic\n",
        c.engine->strategy);
  if (c.law && !c.law->control_failed())
    return fmt::format(
        "UNTESTED: the control's error does not show in {} texts either: the drafter is too good, "
        "or the\nlaw too narrow; raise --samples or --temp, or give other prompts\n",
        c.law->samples);
  return c.law ? "EXACT: every text is the same, bit for bit, and the law too; the control failed, "
                 "as it must\n"
               : "EXACT: every compared text is the same, bit for bit (--stochastic tests laws, "
                 "too)\n";
}

}  // namespace

Certificate Certification::certificate() const {
  if (equality.first || (law && !law->passed())) return Certificate::kDiffers;
  const bool law_tested = law ? law->control_failed() : engine->lossless;
  if (equality.drafted() == 0 || !law_tested) return Certificate::kUntested;
  return Certificate::kExact;
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
  if (c.equality.first) out += FirstDifference(*c.equality.first, engine);
  if (c.law) out += LawTable(c);
  return out + "\n" + Verdict(c);
}

}  // namespace foretoken::cli
