// SPDX-License-Identifier: Apache-2.0
// foretoken-train: makes vocabularies, models, drafts and heads.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "train/verbs.h"

namespace foretoken::train {
namespace {

constexpr const char* kUsage =
    "usage: foretoken-train VERB [flags]\n\n"
    "  tokenizer  a vocabulary from text\n"
    "  model      a llama model from text\n"
    "  sample     text as a target writes it, to distil from\n"
    "  distill    a small draft model that imitates a target\n"
    "  eagle      an EAGLE-3 head for a target\n"
    "  mtp        a next-token head (MTP) for a target\n"
    "  block      a block drafter (DFlash) for a target\n"
    "\nforetoken-train VERB --help lists the flags. A run that was stopped continues when its "
    "command is given again.\n";

struct Verb {
  const char* name;
  int (*run)(const Arguments& arguments);
};
constexpr std::array kVerbs = {Verb{"model", ModelVerb},     Verb{"sample", SampleVerb},
                               Verb{"distill", DistillVerb}, Verb{"eagle", EagleVerb},
                               Verb{"mtp", MtpVerb},         Verb{"block", BlockVerb}};

// The vocabulary trainer is beside this program.
int TokenizerVerb(char** argv) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string path = (self.parent_path() / "foretoken-train-tokenizer").string();
  execv(path.c_str(), argv + 1);
  return Report({ErrorCode::kNotFound,
                 fmt::format("{}: cannot be started; it belongs beside foretoken-train", path)});
}

int Main(int argc, char** argv) {
  if (argc < 2) return std::fputs(kUsage, stdout) < 0;
  const std::string verb = argv[1];
  const Arguments arguments(argv + 2, argv + argc);
  if (verb == "tokenizer") return TokenizerVerb(argv);
  for (const Verb& known : kVerbs)
    if (verb == known.name) return known.run(arguments);
  if (verb == "-h" || verb == "--help" || verb == "help") return std::fputs(kUsage, stdout) < 0;
  return Report({ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is not a verb; see foretoken-train --help", Shown(verb))});
}

}  // namespace
}  // namespace foretoken::train

int main(int argc, char** argv) {
  try {
    return foretoken::train::Main(argc, argv);
  } catch (
      const std::exception& e) {  // libtorch and the library of files throw; nothing of ours does
    std::string message = e.what();
    std::fprintf(stderr, "foretoken-train: %s\n", message.substr(0, message.find('\n')).c_str());
    return 1;
  }
}
