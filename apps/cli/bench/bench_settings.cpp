// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_settings.h"

#include <fmt/format.h>

#include "settings/llama_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

using settings::FlagGroup;

FlagGroup MeasuringFlags(BenchSettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  return {"Measuring",
          {
              {{"--prompts"},
               "FILE",
               "JSON lines, each an object with `prompt`, or with `turns` (the first one counts), "
               "and perhaps `category`; default: a few built-in stories, lists and repetitions",
               settings::StoreText(settings.prompts_file)},
              {{"--max-prompts"},
               "N",
               "only the first N prompts; default 0: all",
               settings::StoreInteger(settings.max_prompts, 0, 1 << 24)},
              {{"-n", "--n-predict", "--max-tokens"},
               "N",
               "tokens to generate for each prompt; default 128",
               settings::StoreInteger(generation.request.max_new_tokens, 1, kMaxTextTokens)},
              {{"--ignore-eos"},
               "",
               "continue after end tokens, so that all texts have the same length",
               settings::StoreTrue(generation.request.ignore_eos)},
              settings::StopTokenFlag(generation),
              {{"--repeats"},
               "N",
               "how often everything runs, plain and speculative in turn; default 3",
               settings::StoreInteger(settings.repeats, 1, 1000)},
              {{"--batch"},
               "N,N,...",
               "requests that run together, 1 to 256; default 1",
               settings::StoreList(settings.batches, 1, 256)},
              {{"--rows"},
               "N,N,...",
               "rows of the target passes that are timed; default 1,2,4,8,16",
               settings::StoreList(settings.rows, 1, 4096)},
              {{"--contexts"},
               "N,N,...",
               "positions in the cache before those passes; default 0 and 2048, or less where the "
               "context is smaller",
               settings::StoreList(settings.contexts, 0, kMaxTextTokens)},
          }};
}

FlagGroup OutputFlags(settings::GenerateSettings& generation) {
  FlagGroup group = PairOutputFlags(generation);
  group.flags.insert(group.flags.begin() + 1, settings::EngineFlag("record", generation.engine));
  return group;
}

}  // namespace

settings::FlagSet BenchFlags(BenchSettings& settings) {
  settings::FlagSet flags(
      "bench [-m MODEL] [-md DRAFT] [flags]",
      "Measures this machine with these models: passes by their rows and context, drafts, and "
      "plain "
      "and speculative decoding in turn, in one process. Exit code 1 where the texts differ that "
      "must not.");
  flags.Add(settings::ModelFlags(settings.generation.engine));
  flags.Add(MeasuringFlags(settings));
  flags.Add(settings::SpeculationFlags(settings.generation));
  flags.Add(settings::DraftingFlags(settings.generation));
  flags.Add(PairSamplingFlags(
      settings,
      "temperature, 0 to 2; default 0: the most probable token, and all texts must be the same"));
  flags.Add(OutputFlags(settings.generation));
  flags.SetEssential({"-m", "-c", "-t", "-md", "--spec-type", "--num-speculative-tokens",
                      "--prompts", "-n", "--repeats", "--batch", "--temp", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken bench",
       "foretoken bench -m target.gguf -md draft.gguf -c 4096 --prompts questions.jsonl --json",
       "foretoken bench -m target.gguf --rows 1,2,3,4,5,6,7,8 --contexts 0,1024,4096 --batch 1,4"});
  return flags;
}

Status Finish(BenchSettings& settings) {
  FORETOKEN_CHECK_OK(Finish(static_cast<PairSettings&>(settings)));
  if (settings.rows.front() != 1) settings.rows.insert(settings.rows.begin(), 1);  // the measure
  settings.generation.engine.max_sequences = settings.batches.back();
  return {};
}

}  // namespace foretoken::cli
