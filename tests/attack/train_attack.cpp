// SPDX-License-Identifier: Apache-2.0
// train_attack: mutated model files against the verbs of foretoken-train that read models: sample,
// distill, eagle, mtp and block. A verb ends with 0 and an output that opens, or with an error of one line
// and no output. See attack/file_attack.h.
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "attack/file_attack.h"
#include "foretoken/tools/model_file.h"
#include "train/verbs.h"

namespace foretoken::attack {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)) {
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 60; ++i)
      text << "the one fox met hen and ran but saw how old big red sun sea at it\n<|endoftext|>\n";
  }

  Outcome Read(const std::string& path, Random& random);

 private:
  train::Arguments ArgumentsFor(std::uint64_t verb, const std::string& path) const;
  std::string NewErrors();
  std::string WrongOutput(int code) const;

  const std::string folder_;
  const std::string output_ = folder_ + "/out.gguf";
  std::size_t log_read_ = 0;
};

constexpr const char* kVerbs[] = {"sample", "distill", "eagle", "mtp", "block"};

train::Arguments Reader::ArgumentsFor(std::uint64_t verb, const std::string& path) const {
  const std::string text = folder_ + "/text.txt";
  if (verb == 0)
    return {"--model", path, "--text",          text, "--out",        output_, "--tokens", "8",
            "-t",      "1",  "--prompt-tokens", "4",  "--new-tokens", "4"};
  train::Arguments arguments = {"--target", path,      "--text",   text, "--out",
                                output_,    "--steps", "1",        "-t", "1",
                                "--batch",  "2",       "--window", "16"};
  if (verb == 1)
    arguments.insert(arguments.end(), {"--layers", "1", "--width", "32", "--heads", "2",
                                       "--kv-heads", "1", "--ff", "32"});
  if (verb == 3) arguments.insert(arguments.end(), {"--into", folder_ + "/into.gguf"});
  return arguments;
}

// What came on standard error since the last call.
std::string Reader::NewErrors() {
  std::ifstream in(folder_ + "/log", std::ios::binary);
  in.seekg(static_cast<std::streamoff>(log_read_));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  log_read_ += text.size();
  return text;
}

std::string Reader::WrongOutput(int code) const {
  const bool exists = fs::exists(output_);
  if (code != 0) return exists ? "it failed and left an output" : "";
  return exists ? "" : "it succeeded without an output";
}

Outcome Reader::Read(const std::string& path, Random& random) {
  NewErrors();
  const std::uint64_t verb = random.Below(std::size(kVerbs));
  int code = 1;
  std::string thrown;
  try {
    const train::Arguments arguments = ArgumentsFor(verb, path);
    code = verb == 0   ? train::SampleVerb(arguments)
           : verb == 1 ? train::DistillVerb(arguments)
           : verb == 2 ? train::EagleVerb(arguments)
           : verb == 3 ? train::MtpVerb(arguments)
                       : train::BlockVerb(arguments);
  } catch (const std::exception& e) {  // the program's main tells it in one line
    thrown = e.what();
  }
  Outcome outcome{fmt::format("{}: {}", kVerbs[verb],
                              !thrown.empty() ? "an exception: " + thrown.substr(0, 70)
                              : code == 0     ? "opened and done"
                              : code == 1     ? "refused"
                                              : "refused as bad usage")};
  outcome.fault = WrongOutput(code);
  std::string errors = NewErrors();
  if (code != 0 && thrown.empty() && outcome.fault.empty()) {
    while (errors.ends_with('\n')) errors.pop_back();
    outcome.fault = WrongWithMessage(errors.substr(errors.rfind('\n') + 1));
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("out.") || name.starts_with("into.")) fs::remove_all(entry.path());
  }
  return outcome;
}

}  // namespace
}  // namespace foretoken::attack

int main(int argc, char** argv) {
  using namespace foretoken::attack;
  return AttackFiles({argv, static_cast<std::size_t>(argc)},
                     [](const GoodFiles&, const std::string& folder) -> FileReader {
                       auto reader = std::make_shared<Reader>(folder);
                       return [reader](const std::string& path, const GoodFile&, Random& random) {
                         return reader->Read(path, random);
                       };
                     });
}
