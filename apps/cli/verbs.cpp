// SPDX-License-Identifier: Apache-2.0
// The table of verbs.
#include <algorithm>
#include <array>

#include "cli/verb.h"

namespace foretoken::cli {
namespace {

constexpr auto kVerbs = std::to_array<Verb>({
    {"generate", "continues a prompt, faster by speculation, with the same text", RunGenerate,
     DescribeGenerate},
    {"chat", "talks with a model, line by line", RunChat, DescribeChat},
    {"serve", "an HTTP server for OpenAI's clients, with a page for browsers", RunServe,
     DescribeServe},
    {"inspect", "shows what is in a model file, and whether it runs here", RunInspect,
     DescribeInspect},
    {"tokenize", "text to token ids and back", RunTokenize, DescribeTokenize},
    {"quantize", "writes a model file in another number type: smaller, nearly as good", RunQuantize,
     DescribeQuantize},
    {"bench", "measures passes, drafts, and plain beside speculative decoding", RunBench,
     DescribeBench},
    {"check-pair", "tells whether one model can draft for another, and whether it pays",
     RunCheckPair, DescribeCheckPair},
    {"tune", "finds what drafts best for a model here, and writes a profile", RunTune,
     DescribeTune},
    {"certify", "proves on your models that speculation changes nothing", RunCertify,
     DescribeCertify},
    {"replay", "tells how fast a recorded run would have been with other drafts", RunReplay,
     DescribeReplay},
    {"help", "explains the program or a verb", RunHelp, DescribeHelp},
    {"version", "prints the version", RunVersion, DescribeVersion},
    {"completion", "prints the completion for bash, zsh or fish", RunCompletion,
     DescribeCompletion},
    {"man", "prints manual pages", RunMan, DescribeMan},
});

}  // namespace

std::span<const Verb> Verbs() {
  return kVerbs;
}

const Verb* FindVerb(std::string_view name) {
  const auto* const verb =
      std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& row) { return row.name == name; });
  return verb == kVerbs.end() ? nullptr : verb;
}

}  // namespace foretoken::cli
