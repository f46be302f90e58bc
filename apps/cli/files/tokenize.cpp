// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/json/json.h"
#include "cli/input.h"
#include "cli/json_report.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "foretoken/tools/model_file.h"
#include "settings/bundled_models.h"
#include "settings/generate_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

struct TokenizeSettings {
  std::string model;
  std::optional<std::string> text, file;
  std::vector<std::int32_t> ids;
  bool piped = false;  // no flag gives a text: read standard input
  bool detokenize = false, no_bos = false, special = false, raw = false, json = false;
};

settings::FlagSet TokenizeFlags(TokenizeSettings& s) {
  using settings::StoreText;
  using settings::StoreTrue;
  settings::FlagSet flags(
      "tokenize [-m MODEL] (-p TEXT | -f FILE | - | --detokenize IDS) [flags]",
      "Shows the tokens of a text, or the text of tokens. Only the tokenizer of the model file is "
      "read, so files without weights will do. A text is taken byte for byte.");
  flags.Add(
      {"Flags",
       {{{"-m", "--model"},
         "PATH",
         "a GGUF file with a tokenizer; default: the bundled model",
         settings::StorePath(s.model)},
        {{"-p", "--prompt"},
         "TEXT",
         "the text; -, or no text at all: what is piped to standard input",
         StoreText(s.text)},
        {{"-f", "--file"},
         "PATH",
         "a file with the text; - alone or as PATH reads standard input",
         StoreText(s.file)},
        {{"--detokenize"},
         "IDS",
         "print the text of these token ids, as in 1,2,3",
         [&s](const std::string& text) -> Status {
           FORETOKEN_TRY(s.ids, settings::ParseTokenIds(text));
           s.detokenize = true;
           return {};
         }},
        {{"--no-bos"}, "", "put no begin and end tokens around the text", StoreTrue(s.no_bos)},
        {{"--special"},
         "",
         "read names of control tokens in the text, such as <s>, as these tokens; print them when "
         "detokenizing",
         StoreTrue(s.special)},
        settings::RawFlag(s.raw),
        {{"--json"},
         "",
         "print one JSON object: token_ids and pieces, or text",
         StoreTrue(s.json)}}});
  flags.SetPositional("-", [&s](const std::string& argument) -> Status {
    if (argument != "-") {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: an argument that no flag takes; give a text with -p and a file "
                              "with -f",
                              argument));
    }
    s.file = argument;
    return {};
  });
  flags.SetExamples({"foretoken tokenize -m model.gguf -p \"Hello, world\"",
                     "foretoken tokenize -m model.gguf --detokenize 1,2,3"});
  return flags;
}

Status Finish(TokenizeSettings& s) {
  FORETOKEN_CHECK_OK(settings::FillInModel(s.model));
  if (s.text == "-" && !s.file) s.file = std::exchange(s.text, std::nullopt);
  s.piped = !s.text && !s.file && !s.detokenize && StandardInputHoldsText();
  if (s.piped) s.file = "-";
  const int sources = (s.text ? 1 : 0) + (s.file ? 1 : 0) + (s.detokenize ? 1 : 0);
  if (sources == 1) return {};
  return Fail(ErrorCode::kInvalidArgument,
              sources == 0
                  ? "text: none is given; pass -p TEXT, -f FILE or --detokenize IDS, or pipe "
                    "the text in"
                  : "text: more than one of -p, -f, - and --detokenize; keep one");
}

// One token per line: id and piece.
std::string Table(const std::vector<std::int32_t>& ids, const std::vector<std::string>& pieces) {
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out += fmt::format("{:>7}  {}\n", ids[i], QuotedJson(pieces[i]));
  }
  return out;
}

Result<std::string> Tokens(ModelFile& file, const TokenizeSettings& s) {
  std::string text;
  if (s.text) {
    text = *s.text;
  } else {
    FORETOKEN_TRY(text, ReadText(*s.file));
    if (s.piped && text.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "text: none is given, and standard input is empty; pass -p TEXT, -f FILE or "
                  "--detokenize IDS, or pipe the text in");
  }
  FORETOKEN_TRY(const auto ids, file.Tokenize(text, !s.no_bos, s.special));
  FORETOKEN_TRY(const auto pieces, file.Pieces(ids));
  return s.json ? TokensJson(ids, pieces) : Table(ids, pieces);
}

Result<std::string> Text(ModelFile& file, const TokenizeSettings& s) {
  FORETOKEN_TRY(std::string text, file.Detokenize(s.ids, s.special));
  if (s.json) return TextJson(text, s.ids);
  if (StandardOutputIsTerminal()) text += '\n';  // elsewhere the output is exact
  return text;
}

Result<int> RunTokenize(TokenizeSettings& settings) {
  FORETOKEN_CHECK_OK(Finish(settings));
  FORETOKEN_TRY(const auto file, ModelFile::Open(settings.model));
  FORETOKEN_TRY(const std::string text,
                settings.detokenize ? Text(*file, settings) : Tokens(*file, settings));
  return WriteOutput(text, settings.raw);
}

}  // namespace

extern const Verb kTokenizeVerb =
    MakeVerb<TokenizeFlags, RunTokenize>("tokenize", "text to token ids and back");

}  // namespace foretoken::cli
