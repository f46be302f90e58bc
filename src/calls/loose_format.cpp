// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments are written almost as JSON: a list of calls in Python, and Gemma's.
//   <|tool_call_start|>[weather(city="Rome", days=2), now()]<|tool_call_end|>
//   <|tool_call>call:weather{city:<|"|>Rome<|"|>,days:2}<tool_call|>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/loose_arguments.h"
#include "calls/text_value.h"

namespace foretoken::calls {
namespace {

struct Notation {
  const char* open;         // before calls; "": the answer begins with the list
  const char* close;        // behind them
  bool list;                // between [ and ], with commas; otherwise each call has its marks
  const char* before_name;  // of each call
  char begin, end;          // of the arguments
  const char* assign;       // between a key and its value
  const char* comma;        // as the model writes it
  const char* quote;        // around strings, as they are; "": Python's strings
};

constexpr std::size_t kMostOfName = 256;

class LooseReader final : public CallReader {
 public:
  LooseReader(const Notation& notation, const std::vector<Tool>& tools,
              const ControlTokens& control)
      : notation_(notation),
        tools_(tools),
        open_(control.InText(notation.open)),
        close_(control.InText(notation.close)),
        arguments_(control.InText(notation.quote)),
        at_(*notation.open == '\0' ? At::kOpened : At::kText) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    const std::string waiting = held_ + open_.Take();
    if (!called_) Add(parts, AnswerPart::Kind::kText, waiting);
    held_.clear();
    at_ = At::kText;
  }

 private:
  // kOpened: before the list, or before the first name. kBehind: behind a call. kClose: in the mark
  // behind the calls.
  enum class At { kText, kOpened, kName, kArguments, kBehind, kClose };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kText:
        return ReadText(c, parts);
      case At::kOpened:
        held_ += c;
        if (IsSpace(c)) return;
        if (notation_.list && c != '[') return Break(parts);
        name_ = notation_.list ? "" : std::string(1, c);
        at_ = At::kName;
        return;
      case At::kName:
        held_ += c;
        return ReadName(c, parts);
      case At::kArguments:
        if (arguments_.Read(c, parts)) at_ = At::kBehind;
        return;
      case At::kBehind:
        held_ += c;
        return ReadBehind(c, parts);
      case At::kClose:
        held_ += c;
        return ReadClose(c, parts);
    }
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    if (open_.mark().empty()) return Add(parts, AnswerPart::Kind::kText, std::string_view(&c, 1));
    std::string text;
    if (open_.Read(c, text)) {
      held_ = open_.Take() + open_.mark();
      at_ = At::kOpened;
    }
    Add(parts, AnswerPart::Kind::kText, text);
    called_ = called_ && text.empty();
  }

  void ReadName(char c, std::vector<AnswerPart>& parts) {
    if (c != notation_.begin) {
      if (name_.empty() && IsSpace(c)) return;
      name_ += c;
      if (name_.size() > kMostOfName || c == '\n' || (*notation_.open == '\0' && !MayBeTool()))
        Break(parts);
      return;
    }
    std::string_view name = name_;
    while (!name.empty() && IsSpace(name.back())) name.remove_suffix(1);
    if (name.starts_with(notation_.before_name))
      name.remove_prefix(std::string_view(notation_.before_name).size());
    const auto tool = std::find_if(tools_.begin(), tools_.end(),
                                   [&](const Tool& known) { return known.name == name; });
    if (name.empty() || (*notation_.open == '\0' && tool == tools_.end())) return Break(parts);
    held_.clear();
    called_ = true;
    Add(parts, AnswerPart::Kind::kName, name);
    arguments_.Begin(tool != tools_.end() ? ParametersOf(*tool) : std::vector<Parameter>(), parts);
    at_ = At::kArguments;
  }

  bool MayBeTool() const {
    return std::any_of(tools_.begin(), tools_.end(),
                       [this](const Tool& tool) { return tool.name.starts_with(name_); });
  }

  void ReadBehind(char c, std::vector<AnswerPart>& parts) {
    if (IsSpace(c)) return;
    if (notation_.list && c == ',') {
      name_.clear();
      at_ = At::kName;
      return;
    }
    closed_ = 0;
    at_ = At::kClose;
    if (notation_.list && c == ']') {
      if (close_.empty()) EndCalls();
      return;
    }
    ReadClose(c, parts);
  }

  void ReadClose(char c, std::vector<AnswerPart>& parts) {
    if (closed_ == 0 && IsSpace(c)) return;
    if (closed_ >= close_.size() || c != close_[closed_]) {
      const std::string held = std::exchange(held_, {});
      at_ = At::kText;
      for (const char h : held) ReadText(h, parts);
    } else if (++closed_ == close_.size()) {
      EndCalls();
    }
  }

  void EndCalls() {
    held_.clear();
    at_ = At::kText;
  }

  // What is held is text.
  void Break(std::vector<AnswerPart>& parts) {
    at_ = At::kText;
    Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}));
    called_ = false;
  }

  const Notation& notation_;
  const std::vector<Tool>& tools_;
  MarkFinder open_;
  const std::string close_;
  LooseArguments arguments_;
  At at_;
  bool called_ = false;     // a call was the last thing that came
  std::size_t closed_ = 0;  // characters of the mark behind calls
  std::string held_;        // that is text unless a call comes
  std::string name_;
};

// A JSON grammar whose constants are Python's. Within a text of JSON they stand between escaped
// quotes, so they are not found there.
std::string WithPythonConstants(std::string gbnf) {
  for (const auto& [json, python] :
       {std::pair<std::string_view, std::string_view>{"\"true\"", "\"True\""},
        {"\"false\"", "\"False\""},
        {"\"null\"", "\"None\""}})
    for (std::size_t at = 0; (at = gbnf.find(json, at)) != gbnf.npos; at += python.size())
      if (at == 0 || gbnf[at - 1] != '\\') gbnf.replace(at, json.size(), python);
  return gbnf;
}

class LooseGrammar {
 public:
  LooseGrammar(const Notation& notation, const ControlTokens& control)
      : notation_(notation), control_(control) {}

  Result<AnswerGrammar> Answer(const ToolUse& use) const {
    AnswerGrammar grammar;
    std::string calls = "call ::=", rules;
    for (std::size_t i = 0; i < use.tools.size(); ++i) {
      const std::string prefix = fmt::format("t{}-", i);
      calls += fmt::format("{}{}call", i == 0 ? " " : " | ", prefix);
      rules += fmt::format("{}call ::= {} {}first-0 {}\n", prefix,
                           Quoted(notation_.before_name + use.tools[i].name + notation_.begin),
                           prefix, Quoted(std::string(1, notation_.end)));
      FORETOKEN_CHECK_OK(AddArguments(use.tools[i], prefix, rules, grammar.notices));
    }
    grammar.gbnf = Whole(use) + calls + "\nws ::= [ \\n]{0,2}\n" + rules;
    return Checked(std::move(grammar));
  }

 private:
  std::string Whole(const ToolUse& use) const {
    const std::string open = notation_.open, close = control_.InGrammar(notation_.close);
    std::string calls;
    if (notation_.list)
      calls = fmt::format("calls ::= \"[\" call{} \"]\" {}\n",
                          use.several ? " (\",\" ws call)*" : "", close);
    else
      calls = fmt::format(
          "calls ::= call {}{}\n", close,
          use.several ? fmt::format(" (ws {} call {})*", control_.InGrammar(open), close) : "");
    // Without a mark, a text that begins with [ is a list of calls.
    if (open.empty() && !use.required && use.text_grammar.empty())
      return calls + "root ::= calls | free\nfree ::= ([^\\[] any)?\nany ::= [^\\x00]*\n";
    return AnswersWith(use, open, control_, calls);
  }

  // first-n: the arguments from the n-th on, where none has come before; more-n: where one has.
  Status AddArguments(const Tool& tool, const std::string& prefix, std::string& rules,
                      std::vector<std::string>& notices) const {
    const std::vector<Parameter> parameters = ParametersOf(tool);
    for (std::size_t n = 0; n < parameters.size(); ++n) {
      const Parameter& parameter = parameters[n];
      const std::string value = fmt::format("{}p{}-", prefix, n);
      const std::string one = fmt::format(
          "{} {}value {}more-{}", Quoted(parameter.name + notation_.assign), value, prefix, n + 1);
      for (const char* const kind : {"first", "more"})
        rules +=
            fmt::format("{}{}-{} ::= {}{}{}\n", prefix, kind, n,
                        *kind == 'm' ? Quoted(notation_.comma) + " " : "", one,
                        parameter.required ? "" : fmt::format(" | {}{}-{}", prefix, kind, n + 1));
      AddValue(tool, parameter, value, rules, notices);
      FORETOKEN_CHECK_OK(CheckSize(rules));
    }
    rules +=
        fmt::format("{0}first-{1} ::= \"\"\n{0}more-{1} ::= \"\"\n", prefix, parameters.size());
    return {};
  }

  void AddValue(const Tool& tool, const Parameter& parameter, const std::string& prefix,
                std::string& rules, std::vector<std::string>& notices) const {
    if (parameter.is_text && *notation_.quote != '\0') {
      const std::string quote = control_.InGrammar(notation_.quote);
      TextEnd end;
      end.items = quote;
      end.free = [this](std::string_view name) {
        return TextUntil(name, notation_.quote, "\"\"", false, control_);
      };
      rules += TextValueRules(tool, parameter, prefix + "text-", end, notices) +
               fmt::format("{0}value ::= {1} {0}text-value\n", prefix, quote);
      return;
    }
    std::string json = ArgumentsGrammar({tool.name, parameter.schema}, prefix + "json-", notices);
    if (*notation_.quote == '\0') json = WithPythonConstants(std::move(json));
    rules += json + fmt::format("{0}value ::= {0}json-root\n", prefix);
  }

  const Notation& notation_;
  const ControlTokens& control_;
};

template <const Notation& notation>
std::unique_ptr<CallReader> LooseReaderOf(const std::vector<Tool>& tools,
                                          const ControlTokens& control) {
  return std::make_unique<LooseReader>(notation, tools, control);
}
template <const Notation& notation>
Result<AnswerGrammar> LooseGrammarOf(const ToolUse& use, const ControlTokens& control) {
  return LooseGrammar(notation, control).Answer(use);
}

constexpr Notation kLfmNotation = {.open = "<|tool_call_start|>",
                                   .close = "<|tool_call_end|>",
                                   .list = true,
                                   .before_name = "",
                                   .begin = '(',
                                   .end = ')',
                                   .assign = "=",
                                   .comma = ", ",
                                   .quote = ""};
constexpr Notation kPythonNotation = {.open = "",
                                      .close = "",
                                      .list = true,
                                      .before_name = "",
                                      .begin = '(',
                                      .end = ')',
                                      .assign = "=",
                                      .comma = ", ",
                                      .quote = ""};
constexpr Notation kGemmaNotation = {.open = "<|tool_call>",
                                     .close = "<tool_call|>",
                                     .list = false,
                                     .before_name = "call:",
                                     .begin = '{',
                                     .end = '}',
                                     .assign = ":",
                                     .comma = ",",
                                     .quote = "<|\"|>"};
constexpr Notation kFunctionGemmaNotation = {.open = "<start_function_call>",
                                             .close = "<end_function_call>",
                                             .list = false,
                                             .before_name = "call:",
                                             .begin = '{',
                                             .end = '}',
                                             .assign = ":",
                                             .comma = ",",
                                             .quote = "<escape>"};

bool WroteLoosely(std::string_view text, std::string_view call) {
  return text.find(call) != text.npos;
}

}  // namespace

extern const CallFormat kLfmFormat = {
    .name = "lfm2",
    .help = "a list of calls in Python between <|tool_call_start|> and <|tool_call_end|>: LFM2.5",
    .wrote =
        [](std::string_view text) {
          return WroteLoosely(text, "<|tool_call_start|>[probe_tool(") ||
                 (WroteLoosely(text, "<|tool_list_start|>") &&
                  !WroteLoosely(text, "<|tool_call_start|>[{"));
        },
    .reader = LooseReaderOf<kLfmNotation>,
    .grammar = LooseGrammarOf<kLfmNotation>};

extern const CallFormat kPythonFormat = {
    .name = "python",
    .help = "the answer is a list of calls in Python: Llama 3.2 and 4, and others",
    .wrote = [](std::string_view text) { return WroteLoosely(text, "[probe_tool(probe_key="); },
    .reader = LooseReaderOf<kPythonNotation>,
    .grammar = LooseGrammarOf<kPythonNotation>};

extern const CallFormat kGemmaFormat = {
    .name = "gemma",
    .help = "call:name{key:value} between <|tool_call> and <tool_call|>: Gemma 4",
    .wrote = [](std::string_view text) { return WroteLoosely(text, "<|tool_call>call:"); },
    .reader = LooseReaderOf<kGemmaNotation>,
    .grammar = LooseGrammarOf<kGemmaNotation>};

extern const CallFormat kFunctionGemmaFormat = {
    .name = "function-gemma",
    .help =
        "call:name{key:value} between <start_function_call> and <end_function_call>: "
        "FunctionGemma",
    .wrote = [](std::string_view text) { return WroteLoosely(text, "<start_function_call>call:"); },
    .reader = LooseReaderOf<kFunctionGemmaNotation>,
    .grammar = LooseGrammarOf<kFunctionGemmaNotation>};

}  // namespace foretoken::calls
