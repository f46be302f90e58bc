// SPDX-License-Identifier: Apache-2.0
// cli/verb.h: the verbs of the program. Each lives in a .cpp of its name and has one row in
// main.cpp.
#pragma once

#include <string>
#include <vector>

namespace foretoken::cli {

// Runs with the arguments after the verb and returns the exit code.
using Arguments = std::vector<std::string>;

int RunBench(const Arguments& arguments);
int RunCertify(const Arguments& arguments);
int RunCheckPair(const Arguments& arguments);
int RunChat(const Arguments& arguments);
int RunGenerate(const Arguments& arguments);
int RunInspect(const Arguments& arguments);
int RunQuantize(const Arguments& arguments);
int RunReplay(const Arguments& arguments);
int RunServe(const Arguments& arguments);
int RunTokenize(const Arguments& arguments);
int RunTune(const Arguments& arguments);

}  // namespace foretoken::cli
