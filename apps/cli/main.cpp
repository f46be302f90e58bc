// SPDX-License-Identifier: Apache-2.0
// foretoken: the command line program. The table of verbs is all that stands here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "foretoken/version.h"

namespace foretoken::cli {
namespace {

struct Verb {
  std::string_view name, summary;
  int (*run)(const Arguments& arguments);
};

constexpr auto kVerbs = std::to_array<Verb>({
    {"generate", "go on from a prompt, faster by speculation, with the same text", RunGenerate},
    {"chat", "talk with a model, line by line", RunChat},
    {"inspect", "what is in a model file: architecture, sizes, types, tokenizer", RunInspect},
    {"tokenize", "text to token ids and back", RunTokenize},
    {"serve", "an HTTP server that OpenAI's clients understand, with a page", RunServe},
    {"bench", "what passes cost here, and plain beside speculative decoding", RunBench},
    {"quantize", "a model file in another number type: smaller, nearly as good", RunQuantize},
    {"replay", "how fast a recorded run would have been with other draft lengths", RunReplay},
    {"certify", "shows on your models that speculation changes nothing", RunCertify},
    {"check-pair", "whether one model can draft for another, and whether it pays here",
     RunCheckPair},
    {"tune", "finds what drafts best for a model here, and writes a profile of it", RunTune},
});

std::string Overview() {
  std::string out =
      "foretoken runs language models (GGUF files) on the processor, and lets a small, fast model\n"
      "draft what the large one then checks several tokens at a time: the same text, sooner.\n\n"
      "usage: foretoken VERB [flags]\n\n";
  for (const Verb& verb : kVerbs) out += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  out +=
      "\nTry:\n"
      "  foretoken generate -p \"Once upon a time\" --trace\n"
      "  foretoken inspect model.gguf\n\n"
      "foretoken VERB --help explains a verb; foretoken --version prints the version.\n";
  return out;
}

int Run(const Arguments& arguments) {
  Output output;
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first.empty() || first == "--help" || first == "-h" || first == "help") {
    output.Write(Overview());
    return kDone;
  }
  if (first == "--version") {
    output.Write(fmt::format("foretoken {}\n", kVersion));
    return kDone;
  }
  const auto* const verb = std::find_if(kVerbs.begin(), kVerbs.end(),
                                        [&](const Verb& row) { return row.name == first; });
  if (verb != kVerbs.end()) return verb->run({arguments.begin() + 1, arguments.end()});
  std::string names;
  for (const Verb& row : kVerbs) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return ReportError(
      {ErrorCode::kInvalidArgument, fmt::format("{}: no such verb; use one of {}", first, names)});
}

}  // namespace
}  // namespace foretoken::cli

int main(int argc, char** argv) {
  foretoken::cli::IgnoreBrokenPipes();
  try {
    return foretoken::cli::Run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& error) {
    return foretoken::cli::ReportError(
        {foretoken::ErrorCode::kIo,
         fmt::format("an error of the program itself: {}", error.what())});
  }
}
