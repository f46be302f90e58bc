// SPDX-License-Identifier: Apache-2.0
// Calls as a list of Python's function calls: between marks, or as the whole answer.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/utf8.h"
#include "calls/answer_grammar.h"
#include "calls/argument_reader.h"
#include "calls/call_format.h"
#include "calls/called_name.h"
#include "calls/json_call.h"
#include "calls/marked_text.h"
#include "calls/tool_parameters.h"
#include "calls/value_grammar.h"
#include "grammar/pattern/regex.h"

namespace foretoken::calls {
namespace {

using grammar::CharacterClass;
using grammar::GbnfWriter;

struct PythonSyntax {
  const char* open;
  const char* close;
  bool whole;  // the answer is the list, which may stand between the marks; otherwise it must
};

constexpr PythonSyntax kLfm2 = {"<|tool_call_start|>", "<|tool_call_end|>", false};
constexpr PythonSyntax kLlamaList = {"<|python_start|>", "<|python_end|>", true};

constexpr ArgumentSyntax kPythonArguments = {.separator = '=', .openers = "([{", .quotes = "\"'"};

// Texts are double-quoted, with the escapes that JSON and Python share.
class PythonNotation final : public ValueNotation {
 public:
  explicit PythonNotation(GbnfWriter& writer)
      : writer_(writer),
        character_(writer.AddRule("py-character")),
        text_(writer.AddRule("py-text")) {
    const auto of = [&](std::string_view list) {
      CharacterClass characters;
      for (const char c : list)
        characters = characters.With(CharacterClass::Of(static_cast<unsigned char>(c)));
      return writer_.OneOf(characters);
    };
    // No surrogates: a character that needs two stands for itself.
    const Part hex = of("0123456789abcdefABCDEF");
    const Part unit =
        writer_.AnyOf({writer_.Sequence({of("0123456789abcefABCEF"), writer_.Repeat(hex, 3, 3)}),
                       writer_.Sequence({of("dD"), of("01234567"), writer_.Repeat(hex, 2, 2)})});
    const Part escape =
        writer_.AnyOf({of("\"\\bfnrt"), writer_.Sequence({writer_.Text("u"), unit})});
    writer_.Define(character_, writer_.AnyOf({writer_.OneOf(grammar::PlainInStrings()),
                                              writer_.Sequence({writer_.Text("\\"), escape})}));
    writer_.Define(text_, Quote(writer_.Repeat(Character(), 0, GbnfWriter::kNoEnd)));
  }

  std::string_view Null() const override { return "None"; }
  std::string_view Boolean(bool value) const override { return value ? "True" : "False"; }
  Part Text(std::string_view text) override { return writer_.Text(QuotedJson(text)); }
  Part AnyText() override { return writer_.Call(text_); }
  std::optional<Part> TextWithin(const TextLimits& limits) override {
    if (!limits.pattern) return Quote(writer_.Repeat(Character(), limits.least, limits.most));
    const auto regex = grammar::ParseRegex(*limits.pattern);
    if (!regex) return std::nullopt;
    return Quote(grammar::InsideOfString(*regex, Character(), writer_));
  }
  Part Key(std::string_view name, bool argument) override {
    if (argument) return writer_.Text(PlainOrQuoted(name) + "=");
    return writer_.Sequence({writer_.Text(QuotedJson(name) + ":"), Space()});
  }
  Part AnyKey(bool argument) override {
    if (!argument) return writer_.Sequence({AnyText(), writer_.Text(":"), Space()});
    const CharacterClass first({{'a', 'z'}, {'A', 'Z'}, {'_', '_'}});
    const Part more = writer_.OneOf(first.With(CharacterClass({{'0', '9'}})));
    return writer_.Sequence(
        {writer_.OneOf(first), writer_.Repeat(more, 0, GbnfWriter::kNoEnd), writer_.Text("=")});
  }
  bool sorts() const override { return false; }

 private:
  Part Character() { return writer_.Call(character_); }
  Part Space() { return writer_.Optional(writer_.Text(" ")); }
  Part Quote(Part inside) {
    return writer_.Sequence({writer_.Text("\""), inside, writer_.Text("\"")});
  }

  GbnfWriter& writer_;
  const int character_, text_;
};

class PythonReader final : public CallReader {
 public:
  PythonReader(const PythonSyntax& syntax, const std::vector<Tool>& tools,
               const ControlTokens& control)
      : syntax_(syntax),
        tools_(tools),
        open_(control.InText(syntax.open)),
        close_(control.InText(syntax.close)),
        arguments_(kPythonArguments, control),
        at_(syntax.whole ? At::kBegin : At::kText) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    // A call that has its name is one, even if the answer ends within it.
    if (at_ == At::kJson && !json_.named()) held_ += json_.raw();
    // Behind a call, white space and the beginning of another call without a name are dropped.
    const std::string waiting = held_ + close_.Take() + open_.Take();
    if (!called_) Add(parts, AnswerPart::Kind::kText, waiting);
    held_.clear();
    at_ = At::kText;
  }

 private:
  // kBegin: before the list that is the whole answer. kOpened: before a call, or behind one in a
  // list. kJson: in a call that is written as JSON. kClose: before the mark behind calls.
  enum class At { kBegin, kText, kOpened, kName, kCall, kJson, kClose };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kBegin:
        return ReadBegin(c, parts);
      case At::kText:
        return ReadText(c, parts);
      case At::kOpened:
        return ReadOpened(c, parts);
      case At::kName:
        return ReadName(c, parts);
      case At::kCall:
        return ReadCall(c, parts);
      case At::kJson:
        return ReadJson(c, parts);
      case At::kClose:
        if (const auto text = close_.Read(c)) {
          at_ = At::kText;
          for (const char t : *text) ReadText(t, parts);
        }
        return;
    }
  }

  void ReadBegin(char c, std::vector<AnswerPart>& parts) {
    held_ += c;
    if (n_mark_ == 0 && IsSpace(c)) return;
    if (c == '[' && (n_mark_ == 0 || n_mark_ == open_.mark().size())) return BeginList();
    if (n_mark_ == open_.mark().size() && IsSpace(c)) return;
    if (n_mark_ == open_.mark().size() || c != open_.mark()[n_mark_]) return AddHeld(parts);
    ++n_mark_;
  }

  void BeginList() {
    in_list_ = true;
    at_ = At::kOpened;
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    if (syntax_.whole) {
      called_ = called_ && IsSpace(c);
      if (called_)
        held_ += c;
      else
        Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}) + c);
      return;
    }
    std::string text;
    if (open_.Read(c, text)) {
      held_ = open_.Take() + open_.mark();
      in_list_ = false;
      at_ = At::kOpened;
    }
    Add(parts, AnswerPart::Kind::kText, text);
    called_ = called_ && text.empty();
  }

  void ReadOpened(char c, std::vector<AnswerPart>& parts) {
    if (in_list_ && c == ']' && (called_ || !syntax_.whole)) return Close();
    if (c == '{' && !syntax_.whole) {
      json_ = JsonCall();
      at_ = At::kJson;
      return ReadJson(c, parts);
    }
    held_ += c;
    if (IsSpace(c) || (in_list_ && c == ',' && called_)) return;
    if (!in_list_ && c == '[') return BeginList();
    name_.Begin();
    at_ = At::kName;
    CheckName(c, parts);
  }

  void ReadName(char c, std::vector<AnswerPart>& parts) {
    held_ += c;
    CheckName(c, parts);
  }

  // A list that is the whole answer begins with a tool's name; otherwise it is text.
  void CheckName(char c, std::vector<AnswerPart>& parts) {
    switch (name_.Read(c)) {
      case CalledName::State::kOpen:
        return;
      case CalledName::State::kOther:
        return AddHeld(parts);
      case CalledName::State::kRead:
        break;
    }
    const Tool* const tool = name_.ToolIn(tools_);
    if (tool == nullptr && syntax_.whole && !called_) return AddHeld(parts);
    Add(parts, AnswerPart::Kind::kName, name_.name());
    held_.clear();
    called_ = true;
    std::vector<std::string> names;
    if (tool != nullptr)
      for (Parameter& parameter : ParametersOf(*tool)) names.push_back(std::move(parameter.name));
    arguments_.Begin(std::move(names));
    at_ = At::kCall;
  }

  void ReadCall(char c, std::vector<AnswerPart>& parts) {
    switch (arguments_.Read(c, parts)) {
      case ArgumentReader::State::kOpen:
        return;
      case ArgumentReader::State::kEnded:
        return EndCall();
      case ArgumentReader::State::kBroken: {
        Close();
        const std::string control = arguments_.control();
        for (const char next : control) Step(next, parts);
      }
    }
  }

  void ReadJson(char c, std::vector<AnswerPart>& parts) {
    const JsonCall::State state = json_.Read(c, parts);
    if (json_.named()) held_.clear(), called_ = true;
    if (state == JsonCall::State::kEnded) return EndCall();
    if (state != JsonCall::State::kBroken) return;
    held_ += json_.raw();
    AddHeld(parts);
  }

  void EndCall() {
    held_.clear();
    if (in_list_)
      at_ = At::kOpened;
    else
      Close();
  }

  void Close() {
    held_.clear();
    at_ = At::kClose;
  }

  // It is no call.
  void AddHeld(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}));
    called_ = false;
    at_ = At::kText;
  }

  const PythonSyntax& syntax_;
  const std::vector<Tool>& tools_;
  MarkFinder open_;
  ClosingMark close_;
  ArgumentReader arguments_;
  JsonCall json_;
  At at_;
  bool in_list_ = false;
  bool called_ = false;     // a call was the last thing that came
  std::size_t n_mark_ = 0;  // characters of the mark before a list that have come
  std::string held_;        // that is text unless a call comes
  CalledName name_{'('};
};

// Rules for any text that is not read as calls; the first one is `other`-0. Where the list of calls
// begins, a rule stands for each beginning of a tool's name.
class OtherText {
 public:
  OtherText(const PythonSyntax& syntax, const ToolUse& use, const ControlTokens& control) {
    const std::size_t list = Follow(0, U'[');
    Loop(0), Loop(list);
    if (!control.Has(syntax.open)) {
      std::size_t node = 0;
      for (const char c : std::string_view(syntax.open))
        node = Follow(node, static_cast<char32_t>(c));
      Loop(node);
      nodes_[node].next[U'['] = list;
    }
    for (const Tool& tool : use.tools) {
      std::size_t node = list;
      const std::string name = PlainOrQuoted(tool.name);
      for (std::string_view left = name; !left.empty();) {
        const Utf8Character c = ReadUtf8(left);
        node = Follow(node, c.code);
        left.remove_prefix(c.size);
      }
      nodes_[node].next[U'('] = kCallBegins;
    }
  }

  std::string Rules() const {
    std::string rules = "any ::= [^\\x00]*\n";
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      std::string others = "\\x00", ways;
      for (const auto& [c, to] : node.next) {
        const std::string character = fmt::format("\\U{:08X}", static_cast<std::uint32_t>(c));
        others += character;
        if (to != kCallBegins) ways += fmt::format(" | [{}] other-{}", character, to);
      }
      if (node.loops) ways += fmt::format(" | [ \\n\\t\\r] other-{}", i);
      if (node.loops) others += " \\n\\t\\r";
      rules += fmt::format("other-{} ::= \"\" | [^{}] any{}\n", i, others, ways);
    }
    return rules;
  }

 private:
  static constexpr std::size_t kCallBegins = std::size_t(-1);
  struct Node {
    std::map<char32_t, std::size_t> next = {};
    bool loops = false;  // white space leaves it as it is
  };

  std::size_t Follow(std::size_t node, char32_t c) {
    const auto [known, added] = nodes_[node].next.try_emplace(c, nodes_.size());
    const std::size_t to = known->second;
    if (added) nodes_.emplace_back();
    return to;
  }
  void Loop(std::size_t node) { nodes_[node].loops = true; }

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

// The rule `call`, and those that it needs.
Status AddPythonCalls(const ToolUse& use, AnswerGrammar& grammar) {
  const MakeNotation make = [](GbnfWriter& writer) {
    return std::make_unique<PythonNotation>(writer);
  };
  std::string call = "call ::=", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    const std::string prefix = fmt::format("t{}-", i);
    call += fmt::format("{}{}call", i == 0 ? " " : " | ", prefix);
    rules += fmt::format("{0}call ::= {1} {0}root \")\"\n", prefix,
                         Quoted(PlainOrQuoted(tool.name) + "("));
    rules += NotatedArguments(tool, prefix, make, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(rules));
  }
  grammar.gbnf += call + "\n" + rules;
  return {};
}

Result<AnswerGrammar> PythonAnswer(const PythonSyntax& syntax, const ToolUse& use,
                                   const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string open = control.InGrammar(syntax.open), close = control.InGrammar(syntax.close);
  const std::string list =
      fmt::format("list ::= \"[\" call{} \"]\"\n", use.several ? " (\",\" \" \"? call)*" : "");
  if (!syntax.whole)
    grammar.gbnf =
        AnswersWith(use, syntax.open, control, list + fmt::format("calls ::= list {}\n", close));
  else if (use.required || !use.text_grammar.empty())
    grammar.gbnf = AnswersWith(use, "", control,
                               list + fmt::format("calls ::= list | {} list {}\n", open, close));
  else
    grammar.gbnf = list + fmt::format("root ::= list | {} list {} | other-0\n", open, close) +
                   OtherText(syntax, use, control).Rules();
  FORETOKEN_CHECK_OK(CheckSize(grammar.gbnf));
  FORETOKEN_CHECK_OK(AddPythonCalls(use, grammar));
  return Checked(std::move(grammar));
}

template <const PythonSyntax& syntax>
std::unique_ptr<CallReader> PythonReaderOf(const std::vector<Tool>& tools,
                                           const ControlTokens& control) {
  return std::make_unique<PythonReader>(syntax, tools, control);
}
template <const PythonSyntax& syntax>
Result<AnswerGrammar> PythonGrammarOf(const ToolUse& use, const ControlTokens& control) {
  return PythonAnswer(syntax, use, control);
}

bool IsInConversation(std::string_view conversation, std::string_view text) {
  return conversation.find(text) != conversation.npos;
}

}  // namespace

// Its first template leaves calls out of the conversation, but marks the list of tools.
extern const CallFormat kLfm2Format = {
    .name = "lfm2",
    .help =
        "a Python list of calls between <|tool_call_start|> and <|tool_call_end|>: LFM2, LFM2.5",
    .wrote =
        [](std::string_view text) {
          return (IsInConversation(text, "<|tool_call_start|>") ||
                  IsInConversation(text, "<|tool_list_start|>")) &&
                 !IsInConversation(text, "<|tool_call_start|>[{");
        },
    .reader = PythonReaderOf<kLfm2>,
    .grammar = PythonGrammarOf<kLfm2>};

extern const CallFormat kLlamaPythonFormat = {
    .name = "llama-python",
    .help = "the answer is a Python list of calls: Llama 4 and 3.2 with templates for it",
    .wrote =
        [](std::string_view text) {
          return IsInConversation(text, "[probe_tool(") &&
                 !IsInConversation(text, "<|tool_call_start|>");
        },
    .reader = PythonReaderOf<kLlamaList>,
    .grammar = PythonGrammarOf<kLlamaList>};

}  // namespace foretoken::calls
