// SPDX-License-Identifier: Apache-2.0
// cli/verb.h: the verbs of the program. Each has a .cpp with its name and one row in verbs.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/flag_set.h"

namespace foretoken::cli {

using Arguments = std::vector<std::string>;

struct Verb {
  std::string_view name, summary;
  int (*run)(const Arguments& arguments);  // with the arguments after the verb; the exit code
  settings::FlagSet (*describe)();         // its flags, to be shown
};

// In the order of the overview.
std::span<const Verb> Verbs();
// Null if there is no verb of that name.
const Verb* FindVerb(std::string_view name);

int RunBench(const Arguments& arguments);
settings::FlagSet DescribeBench();
int RunCertify(const Arguments& arguments);
settings::FlagSet DescribeCertify();
int RunCheckPair(const Arguments& arguments);
settings::FlagSet DescribeCheckPair();
int RunChat(const Arguments& arguments);
settings::FlagSet DescribeChat();
int RunCompletion(const Arguments& arguments);
settings::FlagSet DescribeCompletion();
int RunGenerate(const Arguments& arguments);
settings::FlagSet DescribeGenerate();
int RunHelp(const Arguments& arguments);
settings::FlagSet DescribeHelp();
int RunInspect(const Arguments& arguments);
settings::FlagSet DescribeInspect();
int RunMan(const Arguments& arguments);
settings::FlagSet DescribeMan();
int RunQuantize(const Arguments& arguments);
settings::FlagSet DescribeQuantize();
int RunReplay(const Arguments& arguments);
settings::FlagSet DescribeReplay();
int RunServe(const Arguments& arguments);
settings::FlagSet DescribeServe();
int RunTokenize(const Arguments& arguments);
settings::FlagSet DescribeTokenize();
int RunTune(const Arguments& arguments);
settings::FlagSet DescribeTune();
int RunVersion(const Arguments& arguments);
settings::FlagSet DescribeVersion();

}  // namespace foretoken::cli
