// SPDX-License-Identifier: Apache-2.0
// Calls as JSON objects between marks, one in each pair or a list of them; or alone, as the whole
// answer.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/json_call.h"
#include "calls/marked_text.h"

namespace foretoken::calls {
namespace {

struct JsonSyntax {
  const char* open;   // before a call, or a list of them; "": the answer begins with {
  const char* close;  // behind it
  bool list;
  const char* arguments;  // the member's name
};

class JsonReader final : public CallReader {
 public:
  JsonReader(const JsonSyntax& syntax, const ControlTokens& control)
      : syntax_(syntax),
        open_(control.InText(syntax.open)),
        close_(control.InText(syntax.close)),
        at_(*syntax.open == '\0' ? At::kBegin : At::kText) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    // A call that has its name is one, even if the answer ends within it or its mark.
    if (at_ == At::kCall && !call_.named()) held_ += call_.raw();
    // Behind a call, white space and the beginning of another call without a name are dropped.
    std::string waiting = open_.Take();
    if (called_) held_.clear(), waiting.clear();
    Add(parts, AnswerPart::Kind::kText, held_ + waiting);
    held_.clear();
    at_ = At::kText;
  }

 private:
  enum class At { kBegin, kText, kOpened, kCall, kBehind };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kBegin:
        held_ += c;
        if (IsSpace(c)) return;
        if (c == '{') return BeginCall(parts);
        at_ = At::kText;
        return AddHeld(parts);
      case At::kText:
        return ReadText(c, parts);
      case At::kOpened:
        held_ += c;
        if (IsSpace(c) || (syntax_.list && (c == '[' || c == ','))) return;
        if (c == '{') return BeginCall(parts);
        if (syntax_.list && c == ']') return CloseList();
        at_ = At::kText;
        return AddHeld(parts);
      case At::kCall:
        return ReadCall(c, parts);
      case At::kBehind:
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

  void BeginCall(std::vector<AnswerPart>& parts) {
    held_.pop_back();
    call_ = JsonCall();
    at_ = At::kCall;
    ReadCall('{', parts);
  }

  void ReadCall(char c, std::vector<AnswerPart>& parts) {
    switch (call_.Read(c, parts)) {
      case JsonCall::State::kOpen:
        if (call_.named()) held_.clear();  // the mark is none of the text any more
        return;
      case JsonCall::State::kEnded:
        held_.clear();
        called_ = true;
        closed_ = 0;
        at_ = syntax_.list ? At::kOpened : At::kBehind;
        if (!syntax_.list && close_.empty()) at_ = At::kText;
        return;
      case JsonCall::State::kBroken:
        held_ += call_.raw();
        at_ = At::kText;
        return AddHeld(parts);
    }
  }

  void CloseList() {
    held_.clear();
    closed_ = 0;
    at_ = close_.empty() ? At::kText : At::kBehind;
  }

  // White space, and then the mark; anything else is text.
  void ReadClose(char c, std::vector<AnswerPart>& parts) {
    held_ += c;
    if (closed_ == 0 && IsSpace(c)) return;
    if (c != close_[closed_]) {
      at_ = At::kText;
      const std::string held = std::exchange(held_, {});
      for (const char h : held) ReadText(h, parts);
      return;
    }
    if (++closed_ < close_.size()) return;
    held_.clear();
    at_ = At::kText;
  }

  void AddHeld(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}));
  }

  const JsonSyntax& syntax_;
  MarkFinder open_;
  const std::string close_;
  At at_;
  JsonCall call_;
  bool called_ = false;     // a call was the last thing that came
  std::size_t closed_ = 0;  // characters of the mark behind a call
  std::string held_;        // that is text unless a call comes
};

// call ::= one of the tools' calls, as an object.
Status AddCalls(const JsonSyntax& syntax, const ToolUse& use, AnswerGrammar& grammar) {
  std::string calls = "call ::=", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    const std::string prefix = fmt::format("t{}-", i);
    calls += fmt::format("{}{}call", i == 0 ? " " : " | ", prefix);
    rules += fmt::format("{}call ::= \"{{\\\"name\\\":\" sp {} \",\" sp {} sp {}root \"}}\"\n",
                         prefix, Quoted('"' + tool.name + '"'),
                         Quoted(fmt::format("\"{}\":", syntax.arguments)), prefix);
    rules += ArgumentsGrammar(tool, prefix, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(rules));
  }
  grammar.gbnf += calls + "\nsp ::= \" \"?\nws ::= [ \\n]?\n" + rules;
  return {};
}

Result<AnswerGrammar> JsonAnswer(const JsonSyntax& syntax, const ToolUse& use,
                                 const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string open = syntax.open, close = syntax.close;
  const std::string body =
      syntax.list ? fmt::format("\"[\" call {} \"]\"", use.several ? "(\",\" ws call)*" : "")
                  : "call";
  const std::string one = fmt::format("ws {} ws {}", body, control.InGrammar(close));
  const bool repeats = use.several && !syntax.list && !open.empty();
  // Behind the first mark.
  const std::string calls =
      fmt::format("calls ::= {}{}\n", open.empty() ? body : one,
                  repeats ? fmt::format(" (ws {} {})*", control.InGrammar(open), one) : "");
  // Without a mark, a text that begins with { is a call.
  if (open.empty() && !use.required && use.text_grammar.empty())
    grammar.gbnf = calls + "root ::= calls | free\nfree ::= ([^{] any)?\nany ::= [^\\x00]*\n";
  else
    grammar.gbnf = AnswersWith(use, open, control, calls);
  FORETOKEN_CHECK_OK(AddCalls(syntax, use, grammar));
  return Checked(std::move(grammar));
}

template <const JsonSyntax& syntax>
std::unique_ptr<CallReader> ReaderOf(const std::vector<Tool>&, const ControlTokens& control) {
  return std::make_unique<JsonReader>(syntax, control);
}
template <const JsonSyntax& syntax>
Result<AnswerGrammar> GrammarOf(const ToolUse& use, const ControlTokens& control) {
  return JsonAnswer(syntax, use, control);
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

constexpr JsonSyntax kHermes = {"<tool_call>", "</tool_call>", false, "arguments"};
constexpr JsonSyntax kToolCallList = {"<TOOLCALL>", "</TOOLCALL>", true, "arguments"};
constexpr JsonSyntax kBare = {"", "", false, "parameters"};

}  // namespace

extern const CallFormat kHermesFormat = {
    .name = "hermes",
    .help =
        "JSON between <tool_call> and </tool_call>: Hermes, Qwen 2.5 and 3, Granite 4, and all "
        "models whose templates know no tools",
    .wrote = [](std::string_view text) { return Has(text, "<tool_call>"); },
    .reader = ReaderOf<kHermes>,
    .grammar = GrammarOf<kHermes>};

extern const CallFormat kNemotronFormat = {
    .name = "nemotron",
    .help = "a JSON list between <TOOLCALL> and </TOOLCALL>: Nemotron Nano 2 and Llama Nemotron",
    .wrote = [](std::string_view text) { return Has(text, "<TOOLCALL>"); },
    .reader = ReaderOf<kToolCallList>,
    .grammar = GrammarOf<kToolCallList>};

extern const CallFormat kLlamaFormat = {
    .name = "llama",
    .help = "the answer is a JSON object with name and parameters: Llama 3.1 to 3.3",
    .wrote =
        [](std::string_view text) {
          return Has(text, "\"name\": \"probe_tool\", \"parameters\": {\"probe_key\"");
        },
    .reader = ReaderOf<kBare>,
    .grammar = GrammarOf<kBare>};

}  // namespace foretoken::calls
