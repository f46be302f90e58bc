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

// What stands between two marks. kEither: a call or a list of calls.
enum class JsonShape { kCall, kList, kEither };

struct JsonSyntax {
  const char* open;   // before a call, or a list of them; "": the answer begins with {
  const char* close;  // behind it; "": nothing
  JsonShape shape;
  const char* arguments;      // the member's name
  const char* name = "name";  // of the member with the tool's name
  // Other members, as a part of a rule: before the name, and behind the arguments.
  const char* before = "";
  const char* behind = "";
  TextMarks text_marks = {};
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
    std::string waiting = close_.Take() + open_.Take();
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
        if (c == '[' && syntax_.shape != JsonShape::kCall) in_list_ = true;
        if (IsSpace(c) || (in_list_ && (c == '[' || c == ','))) return;
        if (c == '{') return BeginCall(parts);
        if (in_list_ && c == ']') return Close();
        at_ = At::kText;
        return AddHeld(parts);
      case At::kCall:
        return ReadCall(c, parts);
      case At::kBehind:
        if (const auto text = close_.Read(c)) {
          at_ = At::kText;
          for (const char t : *text) ReadText(t, parts);
        }
        return;
    }
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    if (open_.mark().empty()) return Add(parts, AnswerPart::Kind::kText, std::string_view(&c, 1));
    std::string text;
    if (open_.Read(c, text)) {
      held_ = open_.Take() + open_.mark();
      in_list_ = false;
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
        if (in_list_)
          at_ = At::kOpened;
        else
          Close();
        return;
      case JsonCall::State::kBroken:
        held_ += call_.raw();
        at_ = At::kText;
        return AddHeld(parts);
    }
  }

  void Close() {
    held_.clear();
    at_ = close_.empty() ? At::kText : At::kBehind;
  }

  void AddHeld(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, std::exchange(held_, {}));
  }

  const JsonSyntax& syntax_;
  MarkFinder open_;
  ClosingMark close_;
  At at_;
  JsonCall call_;
  bool in_list_ = false;
  bool called_ = false;  // a call was the last thing that came
  std::string held_;     // that is text unless a call comes
};

// call ::= one of the tools' calls, as an object.
Status AddCalls(const JsonSyntax& syntax, const ToolUse& use, AnswerGrammar& grammar) {
  std::string calls = "call ::=", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    const std::string prefix = fmt::format("t{}-", i);
    calls += fmt::format("{}{}call", i == 0 ? " " : " | ", prefix);
    rules += fmt::format("{0}call ::= \"{{\" {1} {2} sp {3} \",\" sp {4} sp {0}root {5} \"}}\"\n",
                         prefix, syntax.before, Quoted(fmt::format("\"{}\":", syntax.name)),
                         Quoted('"' + tool.name + '"'),
                         Quoted(fmt::format("\"{}\":", syntax.arguments)), syntax.behind);
    rules += ArgumentsGrammar(tool, prefix, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(rules));
  }
  grammar.gbnf +=
      calls + "\nsp ::= \" \"?\nws ::= [ \\n]{0,2}\nin ::= \"\\n\" \" \"{0,8} | \" \"?\n" + rules;
  return {};
}

Result<AnswerGrammar> JsonAnswer(const JsonSyntax& syntax, const ToolUse& use,
                                 const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string open = syntax.open, close = syntax.close;
  const std::string list =
      fmt::format("\"[\" in call {} in \"]\"", use.several ? "(\",\" in call)*" : "");
  const std::string body = syntax.shape == JsonShape::kCall   ? "call"
                           : syntax.shape == JsonShape::kList ? list
                                                              : fmt::format("(call | {})", list);
  const std::string one = fmt::format("ws {} ws {}", body, control.InGrammar(close));
  const bool repeats = use.several && syntax.shape != JsonShape::kList && !open.empty();
  // Behind the first mark.
  const std::string calls =
      fmt::format("calls ::= {}{}\n", open.empty() ? body : one,
                  repeats ? fmt::format(" (ws {} {})*", control.InGrammar(open), one) : "");
  // Without a mark, a text that begins with { is a call.
  if (open.empty() && !use.required && use.text_grammar.empty())
    grammar.gbnf = calls + "root ::= calls | free\nfree ::= ([^{] any)?\nany ::= [^\\x00]*\n";
  else
    grammar.gbnf = AnswersWith(use, open, control, calls, syntax.text_marks);
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

constexpr JsonSyntax kHermes = {"<tool_call>", "</tool_call>", JsonShape::kCall, "arguments"};
constexpr JsonSyntax kToolCallList = {"<TOOLCALL>", "</TOOLCALL>", JsonShape::kList, "arguments"};
constexpr JsonSyntax kMistralList = {
    .open = "[TOOL_CALLS]",
    .close = "",
    .shape = JsonShape::kList,
    .arguments = "arguments",
    .behind = R"gbnf(("," sp "\"id\":" sp "\"" [a-zA-Z0-9]{9} "\"")?)gbnf"};
constexpr JsonSyntax kLfmList = {"<|tool_call_start|>", "<|tool_call_end|>", JsonShape::kList,
                                 "arguments"};
constexpr JsonSyntax kGranite = {"<|tool_call|>", "", JsonShape::kList, "arguments"};
constexpr JsonSyntax kPhi = {"<|tool_call|>", "<|/tool_call|>", JsonShape::kEither, "arguments"};
constexpr JsonSyntax kCommand = {
    .open = "<|START_ACTION|>",
    .close = "<|END_ACTION|>",
    .shape = JsonShape::kList,
    .arguments = "parameters",
    .name = "tool_name",
    .before = R"gbnf("\"tool_call_id\":" sp "\"" [0-9]{1,4} "\"," sp)gbnf",
    .text_marks = {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}};
constexpr JsonSyntax kBare = {"", "", JsonShape::kCall, "parameters"};

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

extern const CallFormat kMistralListFormat = {
    .name = "mistral-list",
    .help = "[TOOL_CALLS] and a JSON list: Mistral 7B v0.3, Mistral Nemo, Mistral Small up to 3.1",
    .ids = CallIds::kNineLetters,
    .wrote =
        [](std::string_view text) {
          return Has(text, "[TOOL_CALLS][{") || Has(text, "[TOOL_CALLS] [{");
        },
    .reader = ReaderOf<kMistralList>,
    .grammar = GrammarOf<kMistralList>};

extern const CallFormat kLfmListFormat = {
    .name = "lfm2-list",
    .help = "a JSON list between <|tool_call_start|> and <|tool_call_end|>: LFM2",
    .wrote = [](std::string_view text) { return Has(text, "<|tool_call_start|>[{"); },
    .reader = ReaderOf<kLfmList>,
    .grammar = GrammarOf<kLfmList>};

// Its template leaves calls out of the conversation, but tells the model of the mark.
extern const CallFormat kGraniteFormat = {
    .name = "granite",
    .help = "<|tool_call|> and a JSON list: Granite 3",
    .wrote =
        [](std::string_view text) {
          return Has(text, "<|tool_call|>") && !Has(text, "<|/tool_call|>");
        },
    .reader = ReaderOf<kGranite>,
    .grammar = GrammarOf<kGranite>,
};

extern const CallFormat kPhiFormat = {
    .name = "phi-4",
    .help = "JSON between <|tool_call|> and <|/tool_call|>: Phi-4-mini",
    .wrote = [](std::string_view text) { return Has(text, "<|/tool_call|>"); },
    .reader = ReaderOf<kPhi>,
    .grammar = GrammarOf<kPhi>};

extern const CallFormat kCommandFormat = {
    .name = "command-r",
    .help = "a JSON list between <|START_ACTION|> and <|END_ACTION|>: Command R7B and Command A",
    .wrote = [](std::string_view text) { return Has(text, "<|START_ACTION|>"); },
    .reader = ReaderOf<kCommand>,
    .grammar = GrammarOf<kCommand>};

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
