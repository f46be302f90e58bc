// SPDX-License-Identifier: Apache-2.0
// Calls with a tag for the function and one for each argument, whose value is written as it is if it
// is a text, and as JSON otherwise:
// <tool_call><function=f><parameter=key>value</parameter></function></tool_call>
//
// Forms differ in their tags alone: each is a row, and they share a reader and a grammar.
#include <fmt/format.h>

#include <algorithm>
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

// What stands around the parts of a call. White space between tags means nothing to the reader.
struct Tags {
  std::string_view open, close;     // around calls
  std::string_view name, name_end;  // around a function's name; both empty: it ends with its line,
                                    // or where a tag begins
  std::string_view function_end;    // empty: the call ends with `close`
  std::string_view key, key_end;    // around a parameter's name
  std::string_view value, value_end;  // around a value; `value` is empty where it follows key_end
  // A line break on both sides of a value that is no part of it.
  bool own_line = false;
  // Line breaks between tags may be left out.
  bool one_line = false;
  bool several = false;         // functions in one pair of marks
  std::string_view token = {};  // a part of tags that may be a control token
  std::string_view kind = {};   // behind a parameter's name: whether it is a text, true or false
};

// A tag as an answer has it, and as items of GBNF: it may be a control token, or have one in it.
std::string InText(std::string_view tag, const Tags& tags, const ControlTokens& control) {
  const std::size_t at = tags.token.empty() ? tag.npos : tag.find(tags.token);
  if (control.Has(tag) || at == tag.npos) return control.InText(tag);
  return std::string(tag.substr(0, at)) + control.InText(tags.token) +
         std::string(tag.substr(at + tags.token.size()));
}
bool HasControl(std::string_view tag, const Tags& tags, const ControlTokens& control) {
  return control.Has(tag) ||
         (!tags.token.empty() && control.Has(tags.token) && tag.find(tags.token) != tag.npos);
}
std::string InGrammar(std::string_view tag, const Tags& tags, const ControlTokens& control) {
  if (control.Has(tag) || !HasControl(tag, tags, control)) return control.InGrammar(tag);
  const std::size_t at = tag.find(tags.token);
  return fmt::format("{} {} {}", Quoted(tag.substr(0, at)), control.InGrammar(tags.token),
                     Quoted(tag.substr(at + tags.token.size())));
}
// Any text until the tag, as TextUntil has it.
std::string Until(std::string_view name, std::string_view tag, std::string_view then, bool may_end,
                  const Tags& tags, const ControlTokens& control) {
  if (control.Has(tag) || !HasControl(tag, tags, control))
    return TextUntil(name, tag, then, may_end, control);
  return fmt::format("{0}-0 ::= [^\\x00] {0}-0 | {1} {2}{3}\n", name, InGrammar(tag, tags, control),
                     then, may_end ? " | \"\"" : "");
}

class TaggedReader final : public CallReader {
 public:
  TaggedReader(const Tags& tags, const std::vector<Tool>& tools, const ControlTokens& control)
      : tags_(tags),
        tools_(tools),
        open_(InText(tags.open, tags, control)),
        value_end_(InText(tags.value_end, tags, control)) {}

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
  // kTags: between tags of a call. kName: in a name without a tag. kValue: in a parameter's value.
  enum class At { kText, kTags, kName, kValue };

  void Step(char c, std::vector<AnswerPart>& parts) {
    switch (at_) {
      case At::kText: {
        if (std::exchange(closed_, false) && c == kControlEnd) return;
        std::string text;
        if (open_.Read(c, text)) {
          held_ = open_.Take() + open_.mark();
          tag_.clear();
          at_ = tags_.name.empty() ? At::kName : At::kTags;
        }
        called_ = called_ && text.empty();
        return Add(parts, AnswerPart::Kind::kText, text);
      }
      case At::kTags:
        return ReadTag(c, parts);
      case At::kName:
        return ReadName(c, parts);
      case At::kValue:
        return ReadValue(c, parts);
    }
  }

  void ReadName(char c, std::vector<AnswerPart>& parts) {
    const bool ends = c == '\n' || c == '<' || c == kControlBegin;
    if (tag_.empty() && IsSpace(c)) {
      held_ += c;
      return;
    }
    if (tag_.empty() && (ends || c == '{')) {
      held_ += c;
      return Break(parts);
    }
    if (!ends) {
      held_ += c;
      tag_ += c;
      return;
    }
    while (IsSpace(tag_.back())) tag_.pop_back();
    Name(std::exchange(tag_, {}), parts);
    at_ = At::kTags;
    ReadTag(c, parts);
  }

  void ReadTag(char c, std::vector<AnswerPart>& parts) {
    if (!named_) held_ += c;
    if (c == kControlBegin || c == kControlEnd) return;  // a tag may be a control token
    if (tag_.empty() && IsSpace(c)) return;
    tag_ += c;
    if (tag_.front() != '<') return Break(parts);
    if (c != '>') return;
    if (!tags_.name.empty() && tag_.starts_with(tags_.name) && !in_function_) {
      if (tag_.ends_with(tags_.name_end)) Name(Within(tags_.name, tags_.name_end), parts);
    } else if (in_function_ && tag_.starts_with(tags_.key)) {
      if (tag_.ends_with(tags_.key_end)) ReadKey(parts);
    } else if (in_function_ && !key_.empty() && tag_ == tags_.value) {
      tag_.clear();
      BeginValue(std::exchange(key_, {}), parts);
    } else if (in_function_ && tag_ == tags_.function_end) {
      EndFunction(parts);
      tag_.clear();
    } else if (named_ && tag_ == tags_.close) {
      EndFunction(parts);
      tag_.clear();
      named_ = false;
      closed_ = true;
      at_ = At::kText;
    } else {
      Break(parts);
    }
  }

  // The inside of the tag, which ends.
  std::string Within(std::string_view begin, std::string_view end) {
    const std::string tag = std::exchange(tag_, {});
    if (tag.size() < begin.size() + end.size()) return {};
    return tag.substr(begin.size(), tag.size() - begin.size() - end.size());
  }

  void Name(const std::string& name, std::vector<AnswerPart>& parts) {
    named_ = called_ = in_function_ = true;
    held_.clear(), key_.clear();
    n_arguments_ = 0;
    Add(parts, AnswerPart::Kind::kName, name);
    parameters_.clear();
    for (const Tool& tool : tools_)
      if (tool.name == name) parameters_ = ParametersOf(tool);
  }

  void ReadKey(std::vector<AnswerPart>& parts) {
    key_ = Within(tags_.key, tags_.key_end);
    if (tags_.value.empty()) BeginValue(std::exchange(key_, {}), parts);
  }

  void EndFunction(std::vector<AnswerPart>& parts) {
    if (std::exchange(in_function_, false))
      Add(parts, AnswerPart::Kind::kArguments, n_arguments_ == 0 ? "{}" : "}");
  }

  // It is no call, or one that does not go on as calls do.
  void Break(std::vector<AnswerPart>& parts) {
    Add(parts, AnswerPart::Kind::kText, named_ ? tag_ : held_);
    held_.clear(), tag_.clear(), key_.clear();
    closed_ = named_;  // what is left of a control token
    named_ = in_function_ = false;
    at_ = At::kText;
  }

  void BeginValue(std::string name, std::vector<AnswerPart>& parts) {
    at_ = At::kValue;
    is_text_ = true;
    const std::size_t kind = tags_.kind.empty() ? name.npos : name.rfind(tags_.kind);
    const std::string said =
        kind == name.npos ? std::string() : name.substr(kind + tags_.kind.size());
    name.resize(std::min(kind, name.size()));
    for (const Parameter& parameter : parameters_)
      if (parameter.name == name) is_text_ = parameter.is_text;
    if (!said.empty()) is_text_ = said == "true";
    Add(parts, AnswerPart::Kind::kArguments,
        fmt::format("{}\"{}\": {}", n_arguments_++ == 0 ? "{" : ", ", InsideOfJsonString(name),
                    is_text_ ? "\"" : ""));
    first_ = true;
    value_.clear();
    in_text_ = escaped_ = is_json_ = false;
  }

  // Reads more of a value of JSON. Whether it is within a text of JSON then, where a tag that is no
  // control token does not end it.
  bool InJsonText(std::string_view more) {
    for (const char c : more) {
      if (value_.empty() && !is_json_ && (c == '{' || c == '[' || c == '"')) is_json_ = true;
      if (c == '"' && !escaped_) in_text_ = !in_text_;
      escaped_ = c == '\\' && in_text_ && !escaped_;
    }
    return is_json_ && in_text_ && value_end_.mark().find(kControlBegin) == std::string::npos;
  }

  void ReadValue(char c, std::vector<AnswerPart>& parts) {
    if (c == kControlEnd && first_) return;  // of the tag before the value
    if (std::exchange(first_, false) && c == '\n' && tags_.own_line) return;
    std::string text;
    bool ended = value_end_.Read(c, text);
    if (ended) {
      std::string spaces = value_end_.Take();
      ended = is_text_ || !InJsonText(text + spaces);
      if (ended && spaces.ends_with('\n') && tags_.own_line) spaces.pop_back();
      text += spaces;
      if (!ended) text += value_end_.mark();
    } else if (!is_text_) {
      InJsonText(text);
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

  const Tags& tags_;
  const std::vector<Tool>& tools_;
  MarkFinder open_, value_end_;
  At at_ = At::kText;
  bool named_ = false, called_ = false;  // the call at hand has its name; a call came last
  bool closed_ = false;       // the character before ended a tag that may be a control token
  bool in_function_ = false;  // its arguments have not ended
  std::string held_, tag_, key_;
  std::vector<Parameter> parameters_;  // of the call
  int n_arguments_ = 0;
  bool is_text_ = true, first_ = false;
  std::string value_;                                         // of JSON
  bool is_json_ = false, in_text_ = false, escaped_ = false;  // it begins as JSON; within it
};

// Writes the grammar of a form.
class TaggedGrammar {
 public:
  TaggedGrammar(const Tags& tags, const ControlTokens& control) : tags_(tags), control_(control) {}

  Result<AnswerGrammar> Answer(const ToolUse& use) const {
    AnswerGrammar grammar;
    grammar.gbnf = Calls(use) + "ws ::= [ \\n]{0,2}\n";
    std::string calls = "call ::=", rules;
    for (std::size_t i = 0; i < use.tools.size(); ++i) {
      const Tool& tool = use.tools[i];
      calls += fmt::format("{}t{}-call", i == 0 ? " " : " | ", i);
      const std::string prefix = fmt::format("t{}-", i);
      std::string body;
      const std::vector<Parameter> parameters = ParametersOf(tool);
      for (std::size_t p = 0; p < parameters.size(); ++p) {
        const std::string value = fmt::format("{}p{}-", prefix, p);
        rules += ValueRules(parameters[p], value, grammar.notices, tool);
        FORETOKEN_CHECK_OK(CheckSize(rules));
        body += fmt::format(" ({} {}value){}", Key(parameters[p]), value,
                            parameters[p].required ? "" : "?");
      }
      rules += fmt::format("{}call ::= {}{} {}\n", prefix, Name(tool), body,
                           tags_.function_end.empty() ? "\"\"" : Item(tags_.function_end));
    }
    grammar.gbnf += calls + "\n" + rules;
    return Checked(std::move(grammar));
  }

 private:
  std::string Item(std::string_view tag) const { return InGrammar(tag, tags_, control_); }
  // A line break between tags.
  std::string Break() const { return tags_.one_line ? "\"\\n\"?" : "\"\\n\""; }

  // The whole answer, and the rules of calls behind the first mark.
  std::string Calls(const ToolUse& use) const {
    const std::string begun = Item(tags_.open), close = Item(tags_.close);
    const std::string more = !use.several    ? ""
                             : tags_.several ? " (ws call)*"
                                             : fmt::format(" (ws {} ws call ws {})*", begun, close);
    const std::string rules = tags_.several
                                  ? fmt::format("calls ::= ws call{} ws {}\n", more, close)
                                  : fmt::format("calls ::= ws call ws {}{}\n", close, more);
    if (control_.Has(tags_.open) || !HasControl(tags_.open, tags_, control_))
      return AnswersWith(use, tags_.open, control_, rules);
    if (use.required) return rules + fmt::format("root ::= {} calls\n", begun);
    if (!use.text_grammar.empty())
      return rules + fmt::format("root ::= {} calls | text-root\n", begun) +
             Prefixed(use.text_grammar, "text-");
    return rules + "root ::= free-0\n" + Until("free", tags_.open, "calls", true, tags_, control_);
  }

  std::string Name(const Tool& tool) const {
    if (tags_.name.empty()) return Quoted(tool.name) + " " + Break();
    return fmt::format("{} {} {} {}", Item(tags_.name), Quoted(tool.name), Item(tags_.name_end),
                       Break());
  }

  std::string Key(const Parameter& parameter) const {
    std::string out = Item(tags_.key) + " " + Quoted(parameter.name);
    if (!tags_.kind.empty())
      out += " " + Quoted(std::string(tags_.kind) + (parameter.is_text ? "true" : "false"));
    out += " " + Item(tags_.key_end);
    if (!tags_.value.empty()) out += fmt::format(" {} {}", Break(), Item(tags_.value));
    return tags_.own_line ? out + " \"\\n\"" : out;
  }

  // The rules of a value; the first one includes the tag behind it.
  std::string ValueRules(const Parameter& parameter, const std::string& prefix,
                         std::vector<std::string>& notices, const Tool& tool) const {
    TextEnd end;
    end.items =
        fmt::format("{}{} {}", tags_.own_line ? "\"\\n\" " : "", Item(tags_.value_end), Break());
    // A text may end with its line break, or without; the reader takes the first tag for its end.
    end.free = [this](std::string_view name) {
      return Until(name, tags_.value_end, Break(), false, tags_, control_);
    };
    if (parameter.is_text) return TextValueRules(tool, parameter, prefix, end, notices);
    // The names of its rules must not meet those of the value's.
    return ArgumentsGrammar({tool.name, parameter.schema}, prefix + "json-", notices) +
           fmt::format("{}value ::= {}json-root {}\n", prefix, prefix, end.items);
  }

  const Tags& tags_;
  const ControlTokens& control_;
};

// Whether the text has the probe's call, with any white space between its first tags.
bool WroteCall(const Tags& tags, std::string_view text) {
  const std::string call = std::string(tags.name) + std::string(kProbeTool);
  for (std::size_t at = text.find(tags.open); at != text.npos; at = text.find(tags.open, at + 1)) {
    std::string_view rest = text.substr(at + tags.open.size());
    while (!rest.empty() && IsSpace(rest.front())) rest.remove_prefix(1);
    if (rest.starts_with(call)) return true;
  }
  return false;
}

constexpr Tags kQwenCoder = {.open = "<tool_call>",
                             .close = "</tool_call>",
                             .name = "<function=",
                             .name_end = ">",
                             .function_end = "</function>",
                             .key = "<parameter=",
                             .key_end = ">",
                             .value = "",
                             .value_end = "</parameter>",
                             .own_line = true};
constexpr Tags kSeed = {.open = "<seed:tool_call>",
                        .close = "</seed:tool_call>",
                        .name = "<function=",
                        .name_end = ">",
                        .function_end = "</function>",
                        .key = "<parameter=",
                        .key_end = ">",
                        .value = "",
                        .value_end = "</parameter>"};
constexpr Tags kMiniMax = {.open = "<minimax:tool_call>",
                           .close = "</minimax:tool_call>",
                           .name = "<invoke name=\"",
                           .name_end = "\">",
                           .function_end = "</invoke>",
                           .key = "<parameter name=\"",
                           .key_end = "\">",
                           .value = "",
                           .value_end = "</parameter>",
                           .several = true};
constexpr Tags kGlm = {.open = "<tool_call>",
                       .close = "</tool_call>",
                       .name = "",
                       .name_end = "",
                       .function_end = "",
                       .key = "<arg_key>",
                       .key_end = "</arg_key>",
                       .value = "<arg_value>",
                       .value_end = "</arg_value>",
                       .one_line = true};
constexpr Tags kDsml = {.open = "<｜DSML｜function_calls>",
                        .close = "</｜DSML｜function_calls>",
                        .name = "<｜DSML｜invoke name=\"",
                        .name_end = "\">",
                        .function_end = "</｜DSML｜invoke>",
                        .key = "<｜DSML｜parameter name=\"",
                        .key_end = "\">",
                        .value = "",
                        .value_end = "</｜DSML｜parameter>",
                        .several = true,
                        .token = "｜DSML｜",
                        .kind = "\" string=\""};

template <const Tags& tags>
constexpr CallFormat TaggedRow(std::string_view name, std::string_view help) {
  return {.name = name,
          .help = help,
          .wrote = [](std::string_view text) { return WroteCall(tags, text); },
          .reader = [](const std::vector<Tool>& tools,
                       const ControlTokens& control) -> std::unique_ptr<CallReader> {
            return std::make_unique<TaggedReader>(tags, tools, control);
          },
          .grammar =
              [](const ToolUse& use, const ControlTokens& control) {
                return TaggedGrammar(tags, control).Answer(use);
              }};
}

}  // namespace

extern const CallFormat kTaggedFormat =
    TaggedRow<kQwenCoder>("qwen-coder",
                          "a tag for the function and one for each argument: Qwen3-Coder, Qwen "
                          "3.5, Nemotron 3, Step 3.7");

extern const CallFormat kSeedFormat = TaggedRow<kSeed>(
    "seed-oss", "the tags of qwen-coder, on one line, between marks of their own: Seed-OSS");

extern const CallFormat kMiniMaxFormat =
    TaggedRow<kMiniMax>("minimax-m2", "tags with names as attributes: MiniMax M2");

extern const CallFormat kGlmFormat = TaggedRow<kGlm>(
    "glm", "the name behind <tool_call>, and a tag for each key and each value: GLM 4.5 to 5");

extern const CallFormat kDsmlFormat = TaggedRow<kDsml>(
    "deepseek-v3.2", "tags with the mark DSML, which say what is a text: DeepSeek V3.2");

}  // namespace foretoken::calls
