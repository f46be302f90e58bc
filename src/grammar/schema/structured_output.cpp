// SPDX-License-Identifier: Apache-2.0
#include "foretoken/structured_output.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/work_count.h"
#include "foretoken/result.h"
#include "grammar/grammar_program.h"
#include "grammar/pattern/gbnf_writer.h"
#include "grammar/pattern/regex.h"
#include "grammar/schema/json_texts.h"

namespace foretoken {
namespace {

using grammar::GbnfWriter;

constexpr std::size_t kMaxChoices = 4096;
constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 16;

Result<std::string> Checked(std::string gbnf) {
  if (const auto program = grammar::CompileGbnf(gbnf); !program)
    return Fail(program.error().code, "it makes too large a grammar; lower its repetitions");
  return gbnf;
}

Result<std::string> OfPattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes)
    return Fail(ErrorCode::kTooLarge, fmt::format("{} bytes are more than {}; give a shorter one",
                                                  pattern.size(), kMaxPatternBytes));
  FORETOKEN_TRY(const grammar::Regex regex, grammar::ParseRegex(pattern));
  GbnfWriter writer;
  const int text = writer.AddRule("text");
  writer.Define(text, grammar::WholeText(regex, writer));
  FORETOKEN_TRY(std::string gbnf, writer.Write(text));
  return Checked(std::move(gbnf));
}

Result<std::string> OfChoices(std::span<const std::string> choices) {
  if (choices.empty() || choices.size() > kMaxChoices)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} texts are not in [1, {}]; give so many", choices.size(), kMaxChoices));
  GbnfWriter writer;
  std::vector<GbnfWriter::Part> ways;
  std::size_t n_bytes = 0;
  for (const std::string& choice : choices) {
    if (choice.empty())
      return Fail(ErrorCode::kInvalidArgument, "one of the texts is empty; leave it out");
    n_bytes += choice.size();
    ways.push_back(writer.Text(choice));
  }
  const auto too_long = [n_bytes] {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("the texts are too long, with {} bytes together; give fewer or shorter "
                            "ones",
                            n_bytes));
  };
  const int text = writer.AddRule("text");
  writer.Define(text, writer.AnyOf(ways));
  auto gbnf = writer.Write(text);
  if (!gbnf) return too_long();
  const auto program = grammar::CompileGbnf(*gbnf);
  if (program) return gbnf;
  if (program.error().code == ErrorCode::kTooLarge) return too_long();
  return Fail(program.error().code, "the texts are not UTF-8; correct them");
}

}  // namespace

std::string JsonGrammar() {
  return EmptyIfCancelled([] {
    GbnfWriter writer;
    grammar::JsonTexts json(writer);
    return *writer.Write(json.any_object());
  });
}

Result<std::string> RegexGrammar(std::string_view pattern) {
  return CatchNoMemory("regex", [&]() -> Result<std::string> {
    auto gbnf = OfPattern(pattern);
    if (!gbnf) return Fail(std::move(gbnf).error().Of("regex"));
    return gbnf;
  });
}

Result<std::string> ChoiceGrammar(std::span<const std::string> choices) {
  return CatchNoMemory("choice", [&]() -> Result<std::string> {
    auto gbnf = OfChoices(choices);
    if (!gbnf) return Fail(std::move(gbnf).error().Of("choice"));
    return gbnf;
  });
}

Status CheckGrammar(std::string_view gbnf) {
  return CatchNoMemory("grammar", [&]() -> Status {
    FORETOKEN_CHECK_OK(grammar::CompileGbnf(gbnf));
    return {};
  });
}

}  // namespace foretoken
