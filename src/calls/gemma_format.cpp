// SPDX-License-Identifier: Apache-2.0
// Calls as Gemma's models write them: call:name{key:value} between marks, with texts between marks of
// their own. A row says which marks; one reader and one grammar are for all rows.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/answer_grammar.h"
#include "calls/argument_reader.h"
#include "calls/call_format.h"
#include "calls/called_name.h"
#include "calls/marked_text.h"
#include "calls/value_grammar.h"
#include "grammar/pattern/regex.h"

namespace foretoken::calls {
namespace {

using grammar::CharacterClass;
using grammar::GbnfWriter;
using grammar::Regex;

constexpr std::string_view kCallWord = "call:";

struct GemmaSyntax {
  const char *open, *close;
  ArgumentSyntax arguments;
};

constexpr ArgumentSyntax GemmaArguments(std::string_view mark) {
  return {.separator = ':', .openers = "[{", .quotes = "\"", .mark = mark};
}
constexpr GemmaSyntax kFunctionGemma = {"<start_function_call>", "<end_function_call>",
                                        GemmaArguments("<escape>")};
constexpr GemmaSyntax kGemma4 = {"<|tool_call>", "<tool_call|>", GemmaArguments("<|\"|>")};

// Texts stand as they are between two marks.
class GemmaNotation final : public ValueNotation {
 public:
  GemmaNotation(GbnfWriter& writer, std::string_view mark, const ControlTokens& control)
      : writer_(writer),
        mark_(mark),
        control_(control),
        // The mark as a control token, or else the rest of any text, with the mark behind it.
        foreign_(writer.AddRule(std::string(kForeign))) {
    writer_.Define(foreign_, writer_.Text(kForeign));
  }

  std::string_view Null() const override { return "null"; }
  std::string_view Boolean(bool value) const override { return value ? "true" : "false"; }
  Part Text(std::string_view text) override {
    const bool fits =
        text.find('\0') == text.npos && (IsControl() || text.find(mark_) == text.npos);
    return fits ? Between(writer_.Text(text)) : writer_.AnyOf({});
  }
  Part AnyText() override {
    if (!IsControl()) return writer_.Sequence({writer_.Text(mark_), writer_.Call(foreign_)});
    return Between(AnyCharacters());
  }
  std::optional<Part> TextWithin(const TextLimits& limits) override {
    if (!limits.pattern) return Between(writer_.Repeat(Character(), limits.least, limits.most));
    const auto regex = grammar::ParseRegex(*limits.pattern);
    // A pattern might allow a mark that is a text.
    if (!regex || !IsControl()) return std::nullopt;
    std::vector<Part> ways;
    for (const Regex::Alternative& way : regex->alternatives) {
      const Part text = grammar::WholeText({.alternatives = {way}}, writer_);
      ways.push_back(writer_.Sequence({way.at_begin ? writer_.Text("") : AnyCharacters(), text,
                                       way.at_end ? writer_.Text("") : AnyCharacters()}));
    }
    return Between(writer_.AnyOf(ways));
  }
  Part Key(std::string_view name, bool) override { return writer_.Text(PlainOrQuoted(name) + ":"); }
  Part AnyKey(bool) override {
    const CharacterClass letters({{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}});
    return writer_.Sequence(
        {writer_.Repeat(writer_.OneOf(letters), 1, GbnfWriter::kNoEnd), writer_.Text(":")});
  }
  // Templates sort them.
  bool sorts() const override { return true; }
  std::string ForeignRules() const override {
    if (IsControl()) return fmt::format("{} ::= {}\n", kForeign, control_.InGrammar(mark_));
    return fmt::format("{0} ::= {0}-text-0\n", kForeign) +
           TextUntil(fmt::format("{}-text", kForeign), mark_, "\"\"", false);
  }

 private:
  bool IsControl() const { return control_.Has(mark_); }
  Part Between(Part inside) {
    const Part mark = IsControl() ? writer_.Call(foreign_) : writer_.Text(mark_);
    return writer_.Sequence({mark, inside, mark});
  }
  // Without the beginning of a mark that is a text, so that lengths are plain to see.
  Part Character() {
    CharacterClass others = CharacterClass::Of(0);
    if (!IsControl())
      others = others.With(CharacterClass::Of(static_cast<unsigned char>(mark_.front())));
    return writer_.OneOf(others.Complement());
  }
  Part AnyCharacters() { return writer_.Repeat(Character(), 0, GbnfWriter::kNoEnd); }

  GbnfWriter& writer_;
  const std::string mark_;
  const ControlTokens& control_;
  const int foreign_;
};

class GemmaReader final : public CallReader {
 public:
  GemmaReader(const GemmaSyntax& syntax, const ControlTokens& control)
      : open_(control.InText(syntax.open)),
        close_(control.InText(syntax.close)),
        arguments_(syntax.arguments, control) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    // Behind a call, white space and the beginning of another call without a name are dropped.
    const std::string waiting = held_ + close_.Take() + open_.Take();
    if (!called_) Add(parts, AnswerPart::Kind::kText, waiting);
    held_.clear();
    at_ = At::kText;
  }

 private:
  // kOpened: before the word and the name. kClose: before the mark behind a call.
  enum class At { kText, kOpened, kName, kCall, kClose };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kText:
        return ReadText(c, parts);
      case At::kOpened:
        return ReadOpened(c, parts);
      case At::kName:
        return ReadName(c, parts);
      case At::kCall:
        return ReadCall(c, parts);
      case At::kClose:
        if (const auto text = close_.Read(c)) {
          at_ = At::kText;
          for (const char t : *text) ReadText(t, parts);
        }
        return;
    }
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    std::string text;
    if (open_.Read(c, text)) {
      held_ = open_.Take() + open_.mark();
      n_matched_ = 0;
      at_ = At::kOpened;
    }
    Add(parts, AnswerPart::Kind::kText, text);
    called_ = called_ && text.empty();
  }

  void ReadOpened(char c, std::vector<AnswerPart>& parts) {
    held_ += c;
    if (n_matched_ == 0 && IsSpace(c)) return;
    if (c != kCallWord[n_matched_]) return AddHeld(parts);
    if (++n_matched_ < kCallWord.size()) return;
    name_.Begin();
    at_ = At::kName;
  }

  void ReadName(char c, std::vector<AnswerPart>& parts) {
    held_ += c;
    switch (name_.Read(c)) {
      case CalledName::State::kOpen:
        return;
      case CalledName::State::kOther:
        return AddHeld(parts);
      case CalledName::State::kRead:
        break;
    }
    Add(parts, AnswerPart::Kind::kName, name_.name());
    held_.clear();
    called_ = true;
    arguments_.Begin({});
    at_ = At::kCall;
  }

  void ReadCall(char c, std::vector<AnswerPart>& parts) {
    const ArgumentReader::State state = arguments_.Read(c, parts);
    if (state == ArgumentReader::State::kOpen) return;
    at_ = At::kClose;
    if (state == ArgumentReader::State::kEnded) return;
    const std::string control = arguments_.control();
    for (const char next : control) Step(next, parts);
  }

  // It is no call.
  void AddHeld(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}));
    called_ = false;
    at_ = At::kText;
  }

  MarkFinder open_;
  ClosingMark close_;
  ArgumentReader arguments_;
  CalledName name_{'{'};
  At at_ = At::kText;
  bool called_ = false;        // a call was the last thing that came
  std::size_t n_matched_ = 0;  // characters of kCallWord that have come
  std::string held_;           // that is text unless a call comes
};

Result<AnswerGrammar> GemmaAnswer(const GemmaSyntax& syntax, const ToolUse& use,
                                  const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string more =
      use.several ? fmt::format(" (ws {} call)*", control.InGrammar(syntax.open)) : "";
  grammar.gbnf = AnswersWith(use, syntax.open, control, fmt::format("calls ::= call{}\n", more));
  const MakeNotation make = [&](GbnfWriter& writer) {
    return std::make_unique<GemmaNotation>(writer, syntax.arguments.mark, control);
  };
  std::string call = "call ::= (", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    const std::string prefix = fmt::format("t{}-", i);
    call += fmt::format("{}{}call", i == 0 ? "" : " | ", prefix);
    rules += fmt::format("{0}call ::= {1} {0}root \"}}\"\n", prefix,
                         Quoted(fmt::format("{}{}{{", kCallWord, PlainOrQuoted(tool.name))));
    rules += NotatedArguments(tool, prefix, make, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(rules));
  }
  grammar.gbnf +=
      call + fmt::format(") {}\nws ::= [ \\n]?\n", control.InGrammar(syntax.close)) + rules;
  return Checked(std::move(grammar));
}

template <const GemmaSyntax& syntax>
std::unique_ptr<CallReader> GemmaReaderOf(const std::vector<Tool>&, const ControlTokens& control) {
  return std::make_unique<GemmaReader>(syntax, control);
}
template <const GemmaSyntax& syntax>
Result<AnswerGrammar> GemmaGrammarOf(const ToolUse& use, const ControlTokens& control) {
  return GemmaAnswer(syntax, use, control);
}

bool StandsIn(std::string_view conversation, std::string_view text) {
  return conversation.find(text) != conversation.npos;
}

}  // namespace

extern const CallFormat kFunctionGemmaFormat = {
    .name = "function-gemma",
    .help =
        "call:name{key:value} between <start_function_call> and <end_function_call>: "
        "FunctionGemma",
    .wrote =
        [](std::string_view text) {
          return StandsIn(text, "<start_function_call>") ||
                 StandsIn(text, "<start_function_declaration>");
        },
    .reader = GemmaReaderOf<kFunctionGemma>,
    .grammar = GemmaGrammarOf<kFunctionGemma>};

extern const CallFormat kGemma4Format = {
    .name = "gemma-4",
    .help = "call:name{key:value} between <|tool_call> and <tool_call|>: Gemma 4",
    .wrote =
        [](std::string_view text) {
          return StandsIn(text, "<|tool_call>call:") || StandsIn(text, "<|tool>declaration:");
        },
    .reader = GemmaReaderOf<kGemma4>,
    .grammar = GemmaGrammarOf<kGemma4>};

}  // namespace foretoken::calls
