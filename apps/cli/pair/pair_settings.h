// SPDX-License-Identifier: Apache-2.0
// cli/pair/pair_settings.h: what the verbs that decode many prompts share: bench, certify,
// check-pair, cluster, tune.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_prompts.h"
#include "foretoken/engine.h"
#include "settings/flag_set.h"
#include "settings/generate_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {

struct PairSettings {
  settings::GenerateSettings generation;
  std::optional<std::string> prompts_file;
  int max_prompts = 0;  // 0: all
  // No draft length was given; the bundled models' length is a default too. Set by Finish.
  bool default_length = false;
};

// --prompts, --max-prompts, -n, --ignore-eos.
std::vector<settings::Flag> PromptFlags(PairSettings& settings);
// generate's flags, but greedy unless a temperature is given, so that figures and texts can be compared.
// temperature: that flag's help.
settings::FlagGroup PairSamplingFlags(
    PairSettings& settings,
    const char* temperature = "0 to 2; default 0 as of `bench`: the most probable token");
settings::FlagGroup PairOutputFlags(settings::GenerateSettings& generation);

// After Parse. Errors: those of settings::Finish.
[[nodiscard]] Status Finish(PairSettings& settings);

// Errors: those of the file.
[[nodiscard]] Result<std::vector<BenchPrompt>> Prompts(const PairSettings& settings);

}  // namespace foretoken::cli
