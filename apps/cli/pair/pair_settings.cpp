// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/pair_settings.h"

#include <fmt/format.h>

#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {

std::vector<settings::Flag> PromptFlags(PairSettings& settings) {
  Request& request = settings.generation.request;
  return {
      {{"--prompts"},
       "FILE",
       "JSON lines, each an object with `prompt`, or with `turns` (the first one counts); default: "
       "a few built-in stories, lists and repetitions",
       settings::StoreText(settings.prompts_file)},
      {{"--max-prompts"},
       "N",
       "only the first N prompts; default 0: all",
       settings::StoreInteger(settings.max_prompts, 0, 1 << 24)},
      {{"-n", "--n-predict", "--max-tokens"},
       "N",
       fmt::format("tokens to generate for each prompt; default {}", request.max_new_tokens),
       settings::StoreInteger(request.max_new_tokens, 2, kMaxTextTokens)},
      {{"--ignore-eos"},
       "",
       "continue after an end token, so that all texts have that many",
       settings::StoreTrue(request.ignore_eos)},
  };
}

settings::FlagGroup PairSamplingFlags(PairSettings& settings, const char* temperature) {
  settings::FlagGroup group = settings::SamplingFlags(settings.generation);
  settings.generation.request.sampling.temperature = 0;
  for (settings::Flag& flag : group.flags)
    if (flag.names.front() == "--temp") flag.help = temperature;
  return group;
}

settings::FlagGroup PairOutputFlags(settings::GenerateSettings& generation) {
  return {"Output",
          {
              {{"--json"},
               "",
               "one JSON object on standard output instead of the tables",
               settings::StoreTrue(generation.json)},
              {{"-q", "--quiet"},
               "",
               "no progress on the terminal",
               settings::StoreTrue(generation.quiet)},
          }};
}

Status Finish(PairSettings& settings) {
  // generate's rules need one prompt; these verbs have their own.
  settings.generation.prompt.emplace();
  settings.default_length =
      !settings.generation.engine.speculative.num_speculative_tokens.has_value();
  return settings::Finish(settings.generation);
}

Result<std::vector<BenchPrompt>> Prompts(const PairSettings& settings) {
  std::vector<BenchPrompt> prompts;
  if (settings.prompts_file) {
    FORETOKEN_TRY(prompts, ReadPrompts(*settings.prompts_file));
  } else {
    prompts = BuiltInPrompts();
  }
  const auto most = static_cast<std::size_t>(settings.max_prompts);
  if (most > 0 && prompts.size() > most) prompts.resize(most);
  return prompts;
}

}  // namespace foretoken::cli
