// SPDX-License-Identifier: Apache-2.0
// Calls with a tag for the function and one for each argument, whose value is written as it is:
// <tool_call><function=f><parameter=key>value</parameter></function></tool_call>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/control_text.h"
#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/marked_text.h"
#include "calls/text_value.h"
#include "calls/tool_parameters.h"
#include "foretoken/structured_output.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {
namespace {

using grammar::JsonTree;

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>",
                           kFunction = "<function=", kFunctionEnd = "</function>",
                           kParameter = "<parameter=", kParameterEnd = "</parameter>";

class TaggedReader final : public CallReader {
 public:
  TaggedReader(const std::vector<Tool>& tools, const ControlTokens& control)
      : tools_(tools), open_(control.InText(kOpen)), value_end_(std::string(kParameterEnd)) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    // Behind a call, white space and the beginning of another call without a name are dropped.
    std::string waiting = open_.Take();
    if (called_) held_.clear(), waiting.clear();
    if (!named_) Add(parts, AnswerPart::Kind::kText, held_ + waiting);
    held_.clear();
    named_ = false;
    at_ = At::kText;
  }

 private:
  // kTags: between tags of a call. kValue: in a parameter's value.
  enum class At { kText, kTags, kValue };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kText: {
        std::string text;
        if (open_.Read(c, text)) {
          held_ = open_.Take() + open_.mark();
          tag_.clear();
          at_ = At::kTags;
        }
        called_ = called_ && text.empty();
        return Add(parts, AnswerPart::Kind::kText, text);
      }
      case At::kTags:
        return ReadTag(c, parts);
      case At::kValue:
        return ReadValue(c, parts);
    }
  }

  void ReadTag(char c, std::vector<AnswerPart>& parts) {
    if (!named_) held_ += c;
    if (c == kControlBegin || c == kControlEnd) return;  // a tag may be a control token
    if (tag_.empty() && IsSpace(c)) return;
    tag_ += c;
    if (tag_.front() != '<') return Break(parts);
    if (c != '>') return;
    const std::string tag = std::exchange(tag_, {});
    if (!named_ && tag.starts_with(kFunction)) {
      named_ = called_ = true;
      held_.clear();
      n_arguments_ = 0;
      const std::string name = tag.substr(kFunction.size(), tag.size() - kFunction.size() - 1);
      Add(parts, AnswerPart::Kind::kName, name);
      parameters_.clear();
      for (const Tool& tool : tools_)
        if (tool.name == name) parameters_ = ParametersOf(tool);
    } else if (named_ && tag.starts_with(kParameter)) {
      BeginValue(tag.substr(kParameter.size(), tag.size() - kParameter.size() - 1), parts);
    } else if (named_ && tag == kFunctionEnd) {
      Add(parts, AnswerPart::Kind::kArguments, n_arguments_ == 0 ? "{}" : "}");
    } else if (named_ && tag == kClose) {
      named_ = false;
      at_ = At::kText;
    } else {
      Break(parts);
    }
  }

  // It is no call, or one that does not go on as calls do.
  void Break(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, named_ ? tag_ : held_);
    held_.clear(), tag_.clear();
    named_ = false;
    at_ = At::kText;
  }

  void BeginValue(const std::string& name, std::vector<AnswerPart>& parts) {
    at_ = At::kValue;
    is_text_ = true;
    for (const Parameter& parameter : parameters_)
      if (parameter.name == name) is_text_ = parameter.is_text;
    Add(parts, AnswerPart::Kind::kArguments,
        fmt::format("{}\"{}\": {}", n_arguments_++ == 0 ? "{" : ", ", InsideOfJsonString(name),
                    is_text_ ? "\"" : ""));
    first_ = true;
    value_.clear();
  }

  // One line break belongs to the tag before the value, and one to the tag behind it.
  void ReadValue(char c, std::vector<AnswerPart>& parts) {
    if (std::exchange(first_, false) && c == '\n') return;
    std::string text;
    const bool ended = value_end_.Read(c, text);
    if (ended) {
      std::string spaces = value_end_.Take();
      if (spaces.ends_with('\n')) spaces.pop_back();
      text += spaces;
    }
    if (is_text_)
      Add(parts, AnswerPart::Kind::kArguments, InsideOfJsonString(text));
    else
      value_ += text;
    if (!ended) return;
    // A value that is no JSON is a text.
    if (is_text_)
      Add(parts, AnswerPart::Kind::kArguments, "\"");
    else
      Add(parts, AnswerPart::Kind::kArguments,
          JsonTree::Parse(value_) ? value_ : '"' + InsideOfJsonString(value_) + '"');
    at_ = At::kTags;
  }

  const std::vector<Tool>& tools_;
  MarkFinder open_, value_end_;
  At at_ = At::kText;
  bool named_ = false, called_ = false;  // the call at hand has its name; a call came last
  std::string held_, tag_;
  std::vector<Parameter> parameters_;  // of the call
  int n_arguments_ = 0;
  bool is_text_ = true, first_ = false;
  std::string value_;  // of JSON
};

// The rules of a value; the first one includes the tag behind it.
std::string ValueGrammar(const Parameter& parameter, const std::string& prefix,
                         std::vector<std::string>& notices, const Tool& tool) {
  const TextEnd end = {Quoted("\n</parameter>\n"), [](std::string_view name) {
                         return TextUntil(name, "\n</parameter>\n", "\"\"", false);
                       }};
  if (parameter.is_text) return TextValueRules(tool, parameter, prefix, end, notices);
  return ArgumentsGrammar({tool.name, parameter.schema}, prefix, notices) +
         fmt::format("{}value ::= {}root {}\n", prefix, prefix, Quoted("\n</parameter>\n"));
}

Result<AnswerGrammar> TaggedAnswer(const ToolUse& use, const ControlTokens& control) {
  AnswerGrammar grammar;
  const std::string close = control.InGrammar(kClose), open = control.InGrammar(kOpen);
  const std::string one = fmt::format("ws call ws {}", close);
  grammar.gbnf =
      AnswersWith(use, kOpen, control,
                  fmt::format("calls ::= {}{}\n", one,
                              use.several ? fmt::format(" (ws {} {})*", open, one) : ""));
  std::string calls = "call ::=", rules;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const Tool& tool = use.tools[i];
    calls += fmt::format("{}t{}-call", i == 0 ? " " : " | ", i);
    std::string body;
    const std::vector<Parameter> parameters = ParametersOf(tool);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string prefix = fmt::format("t{}-p{}-", i, p);
      rules += ValueGrammar(parameters[p], prefix, grammar.notices, tool);
      FORETOKEN_CHECK_OK(CheckSize(rules));
      body += fmt::format(" ({} {}value){}",
                          Quoted(fmt::format("<parameter={}>\n", parameters[p].name)), prefix,
                          parameters[p].required ? "" : "?");
    }
    rules +=
        fmt::format("t{}-call ::= {}{} {}\n", i, Quoted(fmt::format("<function={}>\n", tool.name)),
                    body, Quoted(kFunctionEnd));
  }
  grammar.gbnf += calls + "\nws ::= [ \\n]?\n" + rules;
  return Checked(std::move(grammar));
}

}  // namespace

extern const CallFormat kTaggedFormat = {
    .name = "qwen-coder",
    .help = "a tag for the function and one for each argument: Qwen3-Coder, Qwen 3.5, Nemotron 3",
    .wrote = [](std::string_view text) { return text.find(kFunction) != text.npos; },
    .reader = [](const std::vector<Tool>& tools, const ControlTokens& control)
        -> std::unique_ptr<CallReader> { return std::make_unique<TaggedReader>(tools, control); },
    .grammar = TaggedAnswer};

}  // namespace foretoken::calls
