// SPDX-License-Identifier: Apache-2.0
#include "cli/generate/statistics.h"

#include <fmt/format.h>

#include "cli/input.h"
#include "foretoken/catalogue.h"

namespace foretoken::cli {
namespace {

std::string Rate(double tokens, double ms) {
  const auto rate = PerSecond(tokens, ms);
  return rate ? fmt::format(", {:.{}f} tokens/s", *rate, *rate < 100 ? 1 : 0) : "";
}

std::string Share(double part, double whole) {
  return whole > 0 ? fmt::format(" ({:.0f} %)", 100 * part / whole) : "";
}

std::string TextLine(const Completion& completion) {
  const Timings& timings = completion.timings;
  const std::string waits =
      timings.preemptions > 0
          ? fmt::format("; gave its cache to others {} times", timings.preemptions)
          : "";
  return fmt::format("  text      {} tokens in {:.1f} ms{}; ended: {}; seed {}{}\n",
                     completion.token_ids.size(), timings.decode_ms,
                     Rate(timings.decoded_tokens, timings.decode_ms),
                     Name(completion.finish_reason), completion.seed, waits);
}

std::string PromptLine(const Generation& generation) {
  const Timings& timings = generation.completion->timings;
  const std::string cached =
      timings.cached_prompt_tokens > 0
          ? fmt::format(", {} more were in the cache", timings.cached_prompt_tokens)
          : "";
  return fmt::format("  prompt    {} tokens in {:.1f} ms{}{}; loading {:.0f} ms\n",
                     timings.prompt_tokens, timings.prompt_ms,
                     Rate(timings.prompt_tokens, timings.prompt_ms), cached,
                     generation.engine->load_ms);
}

std::string EngineLine(const EngineSummary& engine) {
  const ModelSummary& target = engine.target;
  return fmt::format("  model     {} ({}, {}); {}, {} {}\n", FileName(target.path),
                     target.architecture, target.type, engine.isa, engine.threads,
                     engine.threads == 1 ? "thread" : "threads");
}

std::string DrafterLine(const Generation& generation) {
  const EngineSummary& engine = *generation.engine;
  if (engine.num_speculative_tokens == 0 || engine.method == "none") {
    return "  drafter   none: plain decoding\n";
  }
  const std::string file = engine.draft_model ? fmt::format(" ({})", DraftFileNames(engine)) : "";
  const char* exactness = !generation.completion->lossless ? "lossy"
                          : generation.greedy ? "lossless: the same text as plain decoding"
                          : KeepsText(generation.strategy)
                              ? "lossless: the same text as plain decoding with this seed"
                              : "lossless: the same distribution as plain decoding";
  return fmt::format("  drafter   {}{}, K {}; verified by {}, {}\n", engine.method, file,
                     engine.num_speculative_tokens, generation.strategy, exactness);
}

// Why rounds had no drafts: "in 120 rounds drafts did not promise to pay, in 8 the drafter had none".
// Empty if all had some.
std::string WhyPlain(const EngineCounts& counts) {
  constexpr std::pair<PlainReason, const char*> kReasons[] = {
      {PlainReason::kCost, "drafts did not promise to pay"},
      {PlainReason::kNoDraft, "the drafter had none"},
      {PlainReason::kNoRoom, "the text was about to end"},
      {PlainReason::kBudget, "the pass had no rows left"},
      {PlainReason::kMemory, "the cache had no room"}};
  std::string out;
  for (const auto& [reason, words] : kReasons) {
    const std::int64_t n = counts.Plain(reason).rounds;
    if (n == 0) continue;
    out += out.empty() ? fmt::format("in {} round{} {}", n, n == 1 ? "" : "s", words)
                       : fmt::format(", in {} {}", n, words);
  }
  return out;
}

std::string AcceptanceLines(const SpeculationStats& stats, const EngineCounts& counts) {
  const auto rate = stats.acceptance_rate();
  const std::string why = WhyPlain(counts);
  if (!rate)
    return fmt::format("  drafts    none in {} rounds{}{}\n", stats.rounds, why.empty() ? "" : ": ",
                       why);
  const std::string plain = why.empty() ? "" : fmt::format("  plain     {}\n", why);
  return fmt::format(
             "  drafts    {} of {} accepted ({:.1f} %) in {} of {} rounds; mean acceptance length "
             "{:.2f}\n",
             stats.accepted, stats.drafted, 100 * *rate, stats.draft_rounds, stats.rounds,
             stats.mean_acceptance_length().value_or(1.0)) +
         plain;
}

std::string TimeLine(const SpeculationStats& stats) {
  const double sum = stats.draft_ms + stats.verify_ms + stats.overhead_ms;
  return fmt::format("  time      draft {:.1f} ms{}, verify {:.1f} ms{}, overhead {:.1f} ms{}\n",
                     stats.draft_ms, Share(stats.draft_ms, sum), stats.verify_ms,
                     Share(stats.verify_ms, sum), stats.overhead_ms, Share(stats.overhead_ms, sum));
}

std::string ComparisonLine(const Generation& generation) {
  const Comparison& comparison = *generation.comparison;
  const bool must_agree = generation.greedy || KeepsText(generation.strategy);
  const bool lossless = generation.completion->lossless;
  const char* const ids = comparison.identical ? "the same token ids"
                          : !lossless          ? "other token ids: this strategy is lossy"
                          : must_agree         ? "THE TOKEN IDS DIFFER: please report it"
                                               : "other draws of the same distribution";
  return fmt::format(
      "  speed-up  {:.2f}x: {:.0f} tokens/s against {:.0f} plain, medians of {} runs; {}\n",
      comparison.speedup(), 1000 / comparison.speculative_ms_per_token,
      1000 / comparison.plain_ms_per_token, comparison.repeats, ids);
}

std::string AllLines(const Generation& generation) {
  const Completion& completion = *generation.completion;
  std::string out = EngineLine(*generation.engine) + PromptLine(generation) + TextLine(completion) +
                    DrafterLine(generation);
  if (generation.engine->num_speculative_tokens > 0) {
    out += AcceptanceLines(completion.speculation, generation.counts);
    out += TimeLine(completion.speculation);
  }
  return out;
}

// The speed, whether drafts were right, and what repeats the text.
std::string OneLine(const Generation& generation) {
  const Completion& completion = *generation.completion;
  const SpeculationStats& stats = completion.speculation;
  const bool may_draft =
      generation.engine->num_speculative_tokens > 0 && generation.engine->method != "none";
  const std::string why = may_draft ? WhyPlain(generation.counts) : "";
  const std::string drafts =
      stats.drafted > 0 ? fmt::format("; {} of {} drafts accepted", stats.accepted, stats.drafted)
      : why.empty()     ? ""
                        : fmt::format("; no drafts: {}", why);
  const bool cut_off = completion.finish_reason != FinishReason::kStop &&
                       completion.finish_reason != FinishReason::kLength;
  const std::string end = cut_off ? fmt::format("; ended: {}", Name(completion.finish_reason)) : "";
  const std::string seed = generation.greedy ? "" : fmt::format("; seed {}", completion.seed);
  return fmt::format("  {} tokens in {:.1f} ms{}{}{}{} (--stats tells more)\n",
                     completion.token_ids.size(), completion.timings.decode_ms,
                     Rate(completion.timings.decoded_tokens, completion.timings.decode_ms), drafts,
                     end, seed);
}

}  // namespace

std::string StartLine(const EngineSummary& engine, const SpeculativeUse& use, bool greedy) {
  if (engine.num_speculative_tokens == 0 || engine.method == "none")
    return "speculation: none, plain decoding\n";
  // Your own verifiers and synthetic acceptance keep their rule at temperature 0.
  const bool replaced = greedy && !engine.strategies.empty();
  const std::string strategy =
      engine.strategy == "auto"
          ? fmt::format("{}", fmt::join(use.strategies,
                                        use.relaxes_thinking ? ", parts that think by " : ", "))
      : replaced && engine.strategy != "greedy"
          ? fmt::format("greedy, which every strategy is at temperature 0 ({} too)",
                        engine.strategy)
          : engine.strategy;
  const std::string file = engine.draft_model ? fmt::format(" ({})", DraftFileNames(engine)) : "";
  return fmt::format(
      "speculation: {}{}; K {}{}, {}; verified by {}; {}\n", engine.method, file,
      engine.controller == "fixed" ? "" : "at most ", engine.num_speculative_tokens, use.controller,
      strategy,
      engine.lossless || replaced ? "lossless" : "LOSSY: the text has another distribution");
}

std::string Statistics(const Generation& generation, bool all) {
  std::string out = "\n" + (all ? AllLines(generation) : OneLine(generation));
  if (generation.comparison) out += ComparisonLine(generation);
  return out;
}

}  // namespace foretoken::cli
