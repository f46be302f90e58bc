// SPDX-License-Identifier: Apache-2.0
// cli/bench/bench_prompts.h: the prompts of `bench`.
#pragma once

#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::cli {

struct BenchPrompt {
  std::string text;
  std::string kind;    // "story", or the file's category; "" if it has none
  std::string origin;  // for messages: "questions.jsonl:3"
};

// Some prompts for models of children's stories: free ones, lists, and texts that repeat
// themselves, where drafts are easy.
std::vector<BenchPrompt> BuiltInPrompts();

// JSON lines; empty lines are ignored. Errors: those of the file; kInvalidFile, with the line; a
// file without prompts.
[[nodiscard]] Result<std::vector<BenchPrompt>> ReadPrompts(const std::string& path);

}  // namespace foretoken::cli
