// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/bench/bench_json.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/bench_settings.h"
#include "cli/idle_report.h"
#include "cli/input.h"
#include "cli/open_engine.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"

namespace foretoken::cli {
namespace {

constexpr int kDefaultContext = 2048;
constexpr int kBenchPassRepeats = 9;  // at least: passes are short beside whole texts

// 0 and kDefaultContext, or half of the context size if that does not fit.
std::vector<int> DefaultContexts(int context_size, int most_rows) {
  const int room = context_size - most_rows;
  const int second = room >= kDefaultContext ? kDefaultContext : room / 2;
  return second > 0 ? std::vector<int>{0, second} : std::vector<int>{0};
}

Result<Measurements> MeasurePasses(Engine& engine, const BenchSettings& settings) {
  ProgressLine line(!settings.generation.quiet);
  MeasureOptions options{.rows = settings.rows,
                         .contexts = settings.contexts,
                         .repeats = std::max(kBenchPassRepeats, settings.repeats),
                         .sampling = settings.generation.request.sampling,
                         .on_progress = [&line](double fraction) {
                           line.Show(fmt::format("measuring passes {:.0f} %", 100 * fraction));
                         }};
  if (options.contexts.empty())
    options.contexts = DefaultContexts(engine.summary().target.context_size, settings.rows.back());
  return engine.Measure(options);
}

Result<BenchRuns> RunTexts(Engine& engine, const BenchSettings& settings,
                           std::vector<BenchPrompt> prompts) {
  ProgressLine line(!settings.generation.quiet);
  return RunInTurn(engine, {.request = settings.generation.request,
                            .prompts = std::move(prompts),
                            .batches = settings.batches,
                            .repeats = settings.repeats,
                            .on_run = [&line](int run, int runs) {
                              line.Show(fmt::format("decoding: run {} of {}", run, runs));
                            }});
}

Result<int> RunAll(BenchSettings& settings) {
  FORETOKEN_TRY(std::vector<BenchPrompt> prompts, Prompts(settings));
  FORETOKEN_CHECK_OK(AskForOwnCopy(settings.generation.engine));
  FORETOKEN_TRY(const std::unique_ptr<Engine> engine,
                OpenEngine(settings.generation.engine, settings.generation.quiet));
  FORETOKEN_CHECK_OK(ReadSamplingTexts(*engine, settings.generation));
  ReportIdleSettings(settings.generation, engine->UseFor(settings.generation.request));
  Bench bench{.engine = &engine->summary(),
              .machine = Machine::This(),
              .passes = std::max(kBenchPassRepeats, settings.repeats),
              .measured = {},
              .n_prompts = static_cast<int>(prompts.size()),
              .repeats = settings.repeats,
              .request = &settings.generation.request,
              .runs = {},
              .counts = {}};
  FORETOKEN_TRY(bench.measured, MeasurePasses(*engine, settings));
  FORETOKEN_TRY(bench.runs, RunTexts(*engine, settings, std::move(prompts)));
  bench.counts = engine->counts();
  Output output;
  output.Write(settings.generation.json ? BenchJson(bench) : BenchTables(bench));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  FORETOKEN_CHECK_OK(engine->RecordStatus());
  if (bench.runs.identical.value_or(true)) return kDone;
  return Fail(ErrorCode::kMismatch,
              "bench: speculation changed a text that it must not change; please report it, with "
              "the models and flags");
}

Result<int> RunBench(BenchSettings& settings) {
  FORETOKEN_CHECK_OK(Finish(settings));
  return RunAll(settings);
}

}  // namespace

extern const Verb kBenchVerb = MakeVerb<BenchFlags, RunBench>(
    "bench", "measures passes, drafts, and plain beside speculative decoding");

}  // namespace foretoken::cli
