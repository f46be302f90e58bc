// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_prompts.h"

#include <fmt/format.h>

#include "cli/bench/bench_json.h"
#include "cli/input.h"

namespace foretoken::cli {

std::vector<BenchPrompt> BuiltInPrompts() {
  std::vector<BenchPrompt> prompts = {
      {"Once upon a time, there was a little girl named Lily. She loved to play in the garden with "
       "her dog. One day,",
       "story",
       {}},
      {"Tom found a small red boat by the river. He wanted to sail to the island, but his mother "
       "said that",
       "story",
       {}},
      {"The old bear lived alone in the forest. Every night he looked at the stars and",
       "story",
       {}},
      {"Mia packed her bag for the picnic. She took an apple, a banana, a sandwich, a bottle of "
       "milk,",
       "list",
       {}},
      {"At the farm Ben saw many animals: a cow, a pig, a horse, a duck, a sheep,", "list", {}},
      {"The cat sat on the mat. The cat sat on the hat. The cat sat on the mat. The cat sat on the "
       "hat. The cat sat on the mat.",
       "repetition",
       {}},
      {"\"Knock, knock,\" said the mouse. \"Who is there?\" said the owl. \"Knock, knock,\" said "
       "the mouse. \"Who is there?\" said the owl. \"Knock, knock,\"",
       "repetition",
       {}},
  };
  for (std::size_t i = 0; i < prompts.size(); ++i)
    prompts[i].origin = fmt::format("built-in prompt {}", i + 1);
  return prompts;
}

Result<std::vector<BenchPrompt>> ReadPrompts(const std::string& path) {
  FORETOKEN_TRY(const std::string text, ReadText(path));
  std::vector<BenchPrompt> prompts;
  int number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string origin = fmt::format("{}:{}", path, number + 1);
    auto prompt = PromptOfLine(line);
    if (!prompt) return Fail(std::move(prompt).error().In(origin));
    prompt->origin = origin;
    prompts.push_back(std::move(*prompt));
  }
  if (prompts.empty())
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: no prompt in it; write one JSON object with `prompt` or `turns` "
                            "per line",
                            path));
  return prompts;
}

}  // namespace foretoken::cli
