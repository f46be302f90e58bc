// SPDX-License-Identifier: Apache-2.0
// foretoken-train tokenizer: a vocabulary from text.
#include <cstdio>

#include "settings/flag_set.h"
#include "settings/help_text.h"
#include "settings/setters.h"
#include "train/text/vocabulary.h"

int main(int argc, char** argv) {
  using namespace foretoken;
  train::VocabularyOptions options;
  settings::FlagSet flags(
      "-train tokenizer --text FILE --out FILE [flags]",
      "Trains a SentencePiece BPE vocabulary with byte fallback, kept in a GGUF file.");
  const auto add_text = [&](const std::string& path) -> Status {
    options.text.push_back(path);
    return {};
  };
  const auto set_bytes = [&](const std::string& text) -> Status {
    FORETOKEN_TRY(options.max_bytes, settings::ParseInteger(text, 1, INT64_MAX));
    return {};
  };
  flags.Add(
      {"Flags",
       {{{"--text"}, "FILE", "UTF-8 text; documents are parted by <|endoftext|>", add_text, true},
        {{"--out"}, "FILE", "the GGUF file to write", settings::StoreText(options.out)},
        {{"--size"}, "N", "pieces (4096)", settings::StoreInteger(options.size, 300, 1 << 20)},
        {{"--max-bytes"}, "N", "of text that is read, spread over all of it (40000000)", set_bytes},
        {{"-t", "--threads"},
         "N",
         "threads (2)",
         settings::StoreInteger(options.threads, 1, 512)}}});
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "foretoken-train: %s\n", error.message.c_str());
    return error.code == ErrorCode::kInvalidArgument ? 2 : 1;
  };
  const auto parsed = flags.Parse({argv + 1, argv + argc});
  if (!parsed) return fail(parsed.error());
  if (parsed->outcome != settings::ParseOutcome::kRun)
    return std::fputs(settings::HelpText(flags, {}).c_str(), stdout) < 0;
  if (options.text.empty() || options.out.empty())
    return fail(
        {ErrorCode::kInvalidArgument, "tokenizer: --text and --out are needed; see --help"});
  const auto trained = train::TrainVocabulary(options);
  return trained ? 0 : fail(trained.error());
}
