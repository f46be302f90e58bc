// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_report.h"

#include <fmt/format.h>

#include "cli/input.h"

namespace foretoken::cli {
namespace {

// Three significant digits: 12.3k, 1234, 123, 12.3, 1.23.
std::string Short(double x) {
  if (x >= 10'000) return fmt::format("{:.{}f}k", x / 1000, x < 100'000 ? 1 : 0);
  return fmt::format("{:.{}f}", x, x < 10 ? 2 : x < 100 ? 1 : 0);
}

std::string Range(const Spread& s) {
  return fmt::format("{} ({}-{})", Short(s.median), Short(s.least), Short(s.most));
}

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string Cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string ModelLine(const char* what, const ModelSummary& model, const std::string& more) {
  return fmt::format("{:<9} {}: {}, {}, {} million parameters{}\n", what,
                     Cut(FileName(model.path), 40), model.architecture, model.type,
                     Short(static_cast<double>(model.parameters) / 1e6), more);
}

std::string Head(const Bench& bench) {
  const EngineSummary& engine = *bench.engine;
  std::string out = fmt::format("machine   {}, {} {}\n", Cut(bench.machine.cpu, 70),
                                bench.machine.cores, bench.machine.cores == 1 ? "core" : "cores");
  out += fmt::format("          {}, {} {}; memory {} GB/s\n", engine.isa, engine.threads,
                     engine.threads == 1 ? "thread" : "threads",
                     Range(bench.measured.memory_gb_per_s));
  out += ModelLine("model", engine.target,
                   fmt::format(", {} MB of weights",
                               Short(static_cast<double>(engine.target.weight_bytes) / 1e6)));
  const std::string method = fmt::format("{}, K {}", engine.method, engine.num_speculative_tokens);
  for (const DrafterSummary& draft : engine.drafters)
    out += ModelLine("drafter", draft.model,
                     engine.drafters.size() > 1 ? "; " + draft.name : "; " + method);
  if (engine.drafters.size() > 1)
    out += fmt::format("          {}\n", method);
  else if (engine.drafters.empty())
    out += fmt::format("drafter   {}\n", engine.method == "none" ? "none" : method);
  return out;
}

std::string TargetTable(const Bench& bench) {
  std::string out = fmt::format(
      "\ntarget passes, microseconds (medians of {})\n"
      "{:>9} {:>6} {:>11} {:>11} {:>11} {:>14} {:>13} {:>11}\n",
      bench.passes, "context", "rows", "median", "least", "most", "over one row", "weights GB/s",
      "of memory");
  for (const PassCost& pass : bench.measured.target) {
    const double one = bench.measured.TargetCost(1, pass.context)->us.median;
    const double speed = bench.weights_gb_per_s(pass);
    out += fmt::format("{:>9} {:>6} {:>11} {:>11} {:>11} {:>14.2f} {:>13} {:>9.0f} %\n",
                       pass.context, pass.rows, Short(pass.us.median), Short(pass.us.least),
                       Short(pass.us.most), pass.us.median / one, Short(speed),
                       100 * speed / bench.measured.memory_gb_per_s.median);
  }
  return out;
}

std::string ExpertsTable(const Bench& bench) {
  const ModelSummary& target = bench.engine->target;
  if (target.experts == 0) return "";
  std::string out = fmt::format(
      "\nexperts   {} in each of {} layers, {} for a row; distinct ones of a pass, by its rows:\n",
      target.experts, target.expert_layers, target.experts_used);
  const auto line = [&out](const char* what, const auto& by_rows) {
    if (by_rows.empty()) return;
    out += fmt::format("          {:<15}", what);
    for (const auto& [rows, n] : by_rows) out += fmt::format(" {}: {:.1f} ", rows, n);
    out += "\n";
  };
  const ExpertsByRows experts = ExpertsOf(bench);
  line("random tokens", experts.measured);
  line("decoding", experts.decoding);
  return out;
}

std::string DraftTable(const Bench& bench) {
  if (bench.measured.draft.empty()) return "";
  std::string out = fmt::format(
      "\none more draft, microseconds (means of {} in a round)\n"
      "{:>9} {:>6} {:>11} {:>11} {:>11} {:>14}\n",
      bench.engine->num_speculative_tokens, "context", "seqs", "median", "least", "most",
      "of target's 1");
  for (const PassCost& draft : bench.measured.draft) {
    const double one = bench.measured.TargetCost(1, draft.context)->us.median;
    out += fmt::format("{:>9} {:>6} {:>11} {:>11} {:>11} {:>12.1f} %\n", draft.context, draft.rows,
                       Short(draft.us.median), Short(draft.us.least), Short(draft.us.most),
                       100 * draft.us.median / one);
  }
  return out;
}

std::string OverheadText(const Bench& bench) {
  const StepOverhead& o = bench.measured.overhead;
  std::string out = fmt::format(
      "\nprompt    {} tokens/s, {} rows a pass\n"
      "overhead  a barrier {} us, dispatch {} us, verifying {} {} {} us, a draw {} us\n"
      "          plain step: {} ({} barriers)",
      Range(bench.measured.prompt_tokens_per_second), bench.measured.prompt_rows,
      Short(o.barrier_us), Short(o.dispatch_us), o.verified_rows,
      o.verified_rows == 1 ? "row" : "rows", Short(o.verify_us), Short(o.draw_us),
      Percent(bench.target_overhead()), o.target_barriers);
  if (const auto share = bench.draft_overhead())
    out += fmt::format("; one more draft: {} ({} barriers)", Percent(*share), o.draft_barriers);
  return out + "\n";
}

std::string RunLine(const BenchRow& row) {
  std::string out =
      fmt::format("  {:<13} {:>5} {:>7}  {:<20}", row.kind.empty() ? "all" : Cut(row.kind, 13),
                  row.batch, row.prompts, Range(row.plain));
  if (row.speculative) {
    const auto accepted = row.stats.acceptance_rate();
    const auto length = row.stats.mean_acceptance_length();
    out += fmt::format(" {:<20} {:<16}", Range(*row.speculative), Range(*row.speedup));
    if (accepted && length) out += fmt::format("{:>3.0f} %{:>6.2f}", 100 * *accepted, *length);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

std::string RunTable(const Bench& bench) {
  std::string out = fmt::format(
      "\ndecoding, tokens/s: {} {}, {} tokens at most, T {:g}, {} in turn, median (least-most)\n",
      bench.n_prompts, bench.n_prompts == 1 ? "prompt" : "prompts", bench.request->max_new_tokens,
      bench.request->sampling.temperature,
      bench.repeats == 1 ? "once" : fmt::format("{} times", bench.repeats));
  out += fmt::format("  {:<13} {:>5} {:>7}  {:<20} {:<20} {:<16}{}\n", "", "batch", "prompts",
                     "plain", "speculative", "speed-up", "drafts kept");
  for (const BenchRow& row : bench.runs.batches) out += RunLine(row);
  for (const BenchRow& row : bench.runs.kinds) out += RunLine(row);
  if (bench.runs.identical)
    out += *bench.runs.identical ? "  all texts of a prompt are the same, token by token\n"
                                 : "  TEXTS DIFFER THAT MUST NOT\n";
  return out;
}

}  // namespace

ExpertsByRows ExpertsOf(const Bench& bench) {
  ExpertsByRows by_rows;
  const double layers = bench.engine->target.expert_layers;
  if (layers == 0) return by_rows;
  for (const PassCost& pass : bench.measured.target)
    if (pass.context == bench.context() && pass.distinct_experts > 0)
      by_rows.measured.emplace_back(std::to_string(pass.rows),
                                    static_cast<double>(pass.distinct_experts) / layers);
  for (std::size_t i = 0; i < kRowBandNames.size(); ++i) {
    const EngineCounts::Passes& passes = bench.counts.verify[i];
    if (passes.distinct_experts > 0)
      by_rows.decoding.emplace_back(kRowBandNames[i],
                                    static_cast<double>(passes.distinct_experts) /
                                        (layers * static_cast<double>(passes.passes)));
  }
  return by_rows;
}

std::string BenchTables(const Bench& bench) {
  return Head(bench) + TargetTable(bench) + DraftTable(bench) + OverheadText(bench) +
         RunTable(bench) + ExpertsTable(bench);
}

}  // namespace foretoken::cli
