// SPDX-License-Identifier: Apache-2.0
// Calls that are a name, a separator and a JSON object with the arguments, between marks. A row
// says which marks; one reader and one grammar are for all rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/marked_text.h"
#include "calls/row_text.h"

namespace foretoken::calls {
namespace {

// What stands where; the texts are as row_text.h has them.
struct NamedSyntax {
  const char* section = "";  // before all calls; "": each call stands alone, behind a single mark
  const char* open;
  const char* before_name = "";  // which a model may leave out
  bool numbered = false;         // a colon and a number stand behind the name
  const char* id = "";           // a mark behind the name, which nine letters or digits follow
  const char* separator;         // between the name and the arguments: a mark, or text
  const char* behind = "";       // behind the arguments
  const char* section_end = "";

  std::string_view first() const { return *section == '\0' ? open : section; }
};

constexpr NamedSyntax kDeepSeek = {
    .section = "<｜tool▁calls▁begin｜>",
    .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    .separator = "\n```json\n",
    .behind = "\n```<｜tool▁call▁end｜>",
    .section_end = "<｜tool▁calls▁end｜>",
};
constexpr NamedSyntax kDeepSeekBare = {
    .section = "<｜tool▁calls▁begin｜>",
    .open = "<｜tool▁call▁begin｜>",
    .separator = "<｜tool▁sep｜>",
    .behind = "<｜tool▁call▁end｜>",
    .section_end = "<｜tool▁calls▁end｜>",
};
constexpr NamedSyntax kKimi = {
    .section = "<|tool_calls_section_begin|>",
    .open = "<|tool_call_begin|>",
    .before_name = "functions.",
    .numbered = true,
    .separator = "<|tool_call_argument_begin|>",
    .behind = "<|tool_call_end|>",
    .section_end = "<|tool_calls_section_end|>",
};
constexpr NamedSyntax kMistral = {.open = "[TOOL_CALLS]", .id = "[CALL_ID]", .separator = "[ARGS]"};

constexpr std::string_view kAroundNames = " \n\t\r";  // white space

// A name without the colon and the number behind it, if they are there.
std::string_view WithoutNumber(std::string_view name) {
  const std::size_t end = name.find_last_not_of(kAroundNames) + 1;
  const std::size_t colon = name.substr(0, end).find_last_not_of("0123456789");
  const bool has = colon != name.npos && name[colon] == ':' && colon + 1 < end;
  return has ? name.substr(0, colon) : name;
}

// Finds the end of a JSON object.
class ArgumentsEnd {
 public:
  // Reads the next character; the first one is {. True: it is the last one.
  bool Read(char c) {
    if (in_text_) {
      if (c == '"' && !escaped_) in_text_ = false;
      escaped_ = c == '\\' && !escaped_;
      return false;
    }
    in_text_ = c == '"';
    if (c == '{' || c == '[') ++depth_;
    return (c == '}' || c == ']') && --depth_ == 0;
  }

 private:
  int depth_ = 0;
  bool in_text_ = false, escaped_ = false;
};

// Reads a name and the separator behind it. What belongs to the form around a name may also stand in
// a tool's name; then it belongs to that.
class NameReader {
 public:
  NameReader(const NamedSyntax& syntax, const std::vector<Tool>& tools,
             const ControlTokens& control)
      : syntax_(syntax),
        tools_(tools),
        id_(control.InText(syntax.id)),
        separator_(control.InText(WithoutOuterSpaces(syntax.separator))) {
    for (const Tool& tool : tools) most_ = std::max(most_, tool.name.size() + kMostAround);
  }

  void Begin() {
    name_.clear();
    separator_.Take();
  }
  // Reads the next character. kOther: it is no name, because its line ends, or it is too long.
  RowReader::State Read(char c) {
    std::string text;
    const bool found = separator_.Read(c, text);
    name_ += text;
    if (found) return End();
    if (text.empty()) return State::kOpen;
    line_ = name_.find('\n', name_.find_first_not_of(kAroundNames));
    if (line_ != name_.npos) line_ = name_.find('\n', std::max(line_, ToolLength()));
    return line_ == name_.npos && name_.size() <= most_ ? State::kOpen : State::kOther;
  }
  // Once it is kRead.
  const std::string& name() const { return name_; }
  // Once it is kOther: the characters of its line.
  std::size_t line() const { return line_; }

 private:
  using State = RowReader::State;

  State End() {
    name_ += separator_.Take();
    line_ = name_.npos;
    for (const Tool& tool : tools_)
      if (Written(tool).starts_with(name_ + separator_.mark())) {
        name_ += separator_.mark();
        return State::kOpen;
      }
    name_ = NameIn(name_);
    return name_.empty() ? State::kOther : State::kRead;
  }

  std::string Written(const Tool& tool) const { return syntax_.before_name + tool.name; }

  // The characters of the longest tool's name that has begun, or with which the text begins.
  std::size_t ToolLength() const {
    std::size_t longest = 0;
    for (const Tool& tool : tools_)
      if (const std::string written = Written(tool);
          written.starts_with(name_) || name_.starts_with(written))
        longest = std::max(longest, written.size());
    return longest;
  }

  const Tool* ToolOf(std::string_view written) const {
    for (const Tool& tool : tools_)
      if (Written(tool) == written) return &tool;
    return nullptr;
  }

  std::string NameIn(std::string_view text) const {
    const std::string_view separator = syntax_.separator;
    const std::string_view spaces = separator.substr(0, separator.find_first_not_of(kAroundNames));
    if (text.ends_with(spaces)) text.remove_suffix(spaces.size());
    if (syntax_.numbered) text = WithoutNumber(text);
    if (const Tool* const tool = ToolOf(text)) return tool->name;
    if (!id_.empty()) text = text.substr(0, text.rfind(id_));
    if (const Tool* const tool = ToolOf(text)) return tool->name;
    text = WithoutOuterSpaces(text);
    if (text.starts_with(syntax_.before_name))
      text.remove_prefix(std::string_view(syntax_.before_name).size());
    return std::string(text);
  }

  static constexpr std::size_t kMostAround = 256;  // characters around a tool's name

  const NamedSyntax& syntax_;
  const std::vector<Tool>& tools_;
  const std::string id_;
  MarkFinder separator_;
  std::string name_;
  std::size_t most_ = 512, line_ = 0;  // characters that a name may have; that its line has
};

class NamedReader final : public CallReader {
 public:
  NamedReader(const NamedSyntax& syntax, const std::vector<Tool>& tools,
              const ControlTokens& control)
      : syntax_(syntax),
        first_(control.InText(syntax.first())),
        name_(syntax, tools, control),
        open_(syntax.open, control),
        behind_(syntax.behind, control),
        section_end_(syntax.section_end, control) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    if (at_ == At::kBegin) PassNameOn(parts);
    // Behind a call, white space and the beginning of another call without a name are dropped.
    const std::string waiting = held_ + first_.Take();
    if (!called_) Add(parts, AnswerPart::Kind::kText, waiting);
    held_.clear();
    at_ = At::kText;
  }

 private:
  // kOpened: before a call, or behind the last one. kBegin: before the arguments.
  enum class At { kText, kOpened, kName, kBegin, kArguments, kBehind };
  using State = RowReader::State;

  void Step(char c, std::vector<AnswerPart>& parts) {
    if (at_ == At::kText) return ReadText(c, parts);
    if (at_ == At::kArguments) return ReadArguments(c, parts);
    held_ += c;
    if (at_ == At::kOpened) return ReadOpen(c, parts);
    if (at_ == At::kName) return ReadName(c, parts);
    if (at_ == At::kBehind) return ReadBehind(c, parts);
    if (IsSpace(c)) return;
    if (c != '{') return Break(held_.size() - 1, parts);
    PassNameOn(parts);
    arguments_ = ArgumentsEnd();
    at_ = At::kArguments;
    ReadArguments(c, parts);
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    std::string text;
    const bool found = first_.Read(c, text);
    Add(parts, AnswerPart::Kind::kText, text);
    called_ = called_ && text.empty();
    if (!found) return;
    held_ = first_.Take() + first_.mark();
    n_text_ = held_.size();
    in_section_ = false;
    if (*syntax_.section == '\0') return BeginName();
    BeginOpen();
  }

  void BeginOpen() {
    open_.Begin();
    section_end_.Begin();
    at_ = At::kOpened;
  }

  void ReadOpen(char c, std::vector<AnswerPart>& parts) {
    const State open = open_.Read(c), end = in_section_ ? section_end_.Read(c) : State::kOther;
    if (open == State::kRead) return BeginName();
    if (end == State::kRead) {
      held_.clear();
      at_ = At::kText;
    } else if (open == State::kOther && end == State::kOther) {
      Break(n_text_, parts);
    }
  }

  void BeginName() {
    name_.Begin();
    name_at_ = held_.size();
    at_ = At::kName;
  }

  void ReadName(char c, std::vector<AnswerPart>& parts) {
    const State state = name_.Read(c);
    if (state == State::kRead) at_ = At::kBegin;
    if (state != State::kOther) return;
    const std::size_t n_held = held_.size() - name_at_;
    Break(name_at_ + std::min(name_.line(), n_held), parts);
  }

  // It is no call: so much of what is held is text, and the rest is read as what follows it.
  void Break(std::size_t n_text, std::vector<AnswerPart>& parts) {
    const std::string held = std::exchange(held_, {});
    Add(parts, AnswerPart::Kind::kText, std::string_view(held).substr(0, n_text));
    called_ = called_ && n_text == 0;
    at_ = At::kText;
    for (const char c : std::string_view(held).substr(n_text)) Step(c, parts);
  }

  void PassNameOn(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kName, name_.name());
    called_ = in_section_ = true;
    held_.clear();
  }

  void ReadArguments(char c, std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kArguments, std::string_view(&c, 1));
    if (!arguments_.Read(c)) return;
    n_text_ = 0;
    behind_.Begin();
    at_ = At::kBehind;
    if (behind_.empty()) EndCall();
  }

  void ReadBehind(char c, std::vector<AnswerPart>& parts) {
    const State state = behind_.Read(c);
    if (state == State::kRead) EndCall();
    if (state == State::kOther) Break(0, parts);
  }

  void EndCall() {
    held_.clear();
    at_ = At::kText;
    if (*syntax_.section != '\0') BeginOpen();
  }

  const NamedSyntax& syntax_;
  MarkFinder first_;
  NameReader name_;
  RowReader open_, behind_, section_end_;
  ArgumentsEnd arguments_;
  At at_ = At::kText;
  bool called_ = false;      // a call was the last thing that came
  bool in_section_ = false;  // with a call, so that it may end
  std::string held_;         // that is text unless a call comes
  std::size_t n_text_ = 0;   // characters of it that are text if no call opens
  std::size_t name_at_ = 0;  // where the name begins in it
};

Result<AnswerGrammar> NamedAnswer(const NamedSyntax& syntax, const ToolUse& use,
                                  const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string one = RowRule(syntax.open, "", control) + " call";
  const std::string more = use.several ? fmt::format(" (ws{})*", one) : "";
  const std::string calls = *syntax.section == '\0'
                                ? fmt::format("calls ::= call{}\n", more)
                                : fmt::format("calls ::= ws{}{} ws{}\n", one, more,
                                              RowRule(syntax.section_end, "", control));
  grammar.gbnf = AnswersWith(use, syntax.first(), control, calls);
  std::string separator = RowRule(syntax.separator, "", control);
  if (syntax.numbered) separator = " \":\" [0-9]{1,4} ws" + separator;
  if (*syntax.id != '\0')
    separator = fmt::format(" ({} [a-zA-Z0-9]{{9}})?", control.InGrammar(syntax.id)) + separator;
  std::string call = "call ::=", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    const std::string prefix = fmt::format("t{}-", i);
    call += fmt::format("{}{}call", i == 0 ? " " : " | ", prefix);
    rules +=
        fmt::format("{}call ::= {}{} {}root{}\n", prefix, Quoted(syntax.before_name + tool.name),
                    separator, prefix, RowRule(syntax.behind, " ws", control));
    rules += ArgumentsGrammar(tool, prefix, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(rules));
  }
  grammar.gbnf += call + "\nws ::= [ \\n]{0,2}\n" + rules;
  return Checked(std::move(grammar));
}

template <const NamedSyntax& syntax>
std::unique_ptr<CallReader> NamedReaderOf(const std::vector<Tool>& tools,
                                          const ControlTokens& control) {
  return std::make_unique<NamedReader>(syntax, tools, control);
}
template <const NamedSyntax& syntax>
Result<AnswerGrammar> NamedGrammarOf(const ToolUse& use, const ControlTokens& control) {
  return NamedAnswer(syntax, use, control);
}

bool WroteText(std::string_view conversation, std::string_view text) {
  return conversation.find(text) != conversation.npos;
}

}  // namespace

extern const CallFormat kDeepSeekFormat = {
    .name = "deepseek",
    .help = "a name and a block of JSON between marks: DeepSeek V3 and R1",
    .wrote = [](std::string_view text) { return WroteText(text, "function<｜tool▁sep｜>"); },
    .reader = NamedReaderOf<kDeepSeek>,
    .grammar = NamedGrammarOf<kDeepSeek>};

extern const CallFormat kDeepSeekBareFormat = {
    .name = "deepseek-v3.1",
    .help = "a name, a mark and JSON between marks: DeepSeek V3.1",
    .wrote =
        [](std::string_view text) {
          return WroteText(text, "<｜tool▁sep｜>") && !WroteText(text, "function<｜tool▁sep｜>");
        },
    .reader = NamedReaderOf<kDeepSeekBare>,
    .grammar = NamedGrammarOf<kDeepSeekBare>};

extern const CallFormat kKimiFormat = {
    .name = "kimi-k2",
    .help = "functions.name:number, a mark and JSON between marks: Kimi K2",
    .ids = CallIds::kFunctionNumber,
    // Its first templates leave calls out of the conversation.
    .wrote =
        [](std::string_view text) {
          return WroteText(text, "<|tool_call_argument_begin|>") ||
                 WroteText(text, "<|im_system|>tool_declare<|im_middle|>");
        },
    .reader = NamedReaderOf<kKimi>,
    .grammar = NamedGrammarOf<kKimi>};

extern const CallFormat kMistralFormat = {
    .name = "mistral",
    .help =
        "[TOOL_CALLS], a name, [ARGS] and JSON: Devstral, Magistral, Ministral 3, Mistral Small "
        "3.2",
    .ids = CallIds::kNineLetters,
    .wrote =
        [](std::string_view text) {
          return WroteText(text, "[TOOL_CALLS]") && WroteText(text, "[ARGS]");
        },
    .reader = NamedReaderOf<kMistral>,
    .grammar = NamedGrammarOf<kMistral>};

}  // namespace foretoken::calls
