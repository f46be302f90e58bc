// SPDX-License-Identifier: Apache-2.0
// Calls as a name, a separator and JSON between marks, and lists of JSON behind one mark: what the
// grammars allow, the readers take out, whichever marks are control tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/control_text.h"
#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/form_testing.h"
#include "foretoken/structured_output.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls::named_format {
namespace {

using NamedKind = AnswerPart::Kind;
using NamedParts = std::vector<AnswerPart>;
using grammar::GrammarStates;

const std::vector<Tool> kNamedTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},)"
     R"( "required": ["city"], "additionalProperties": false})"},
    {"now"}};

const std::string kCity = R"({"city": "Rome }\"{", "days": 2})";

// The answers of one form.
struct NamedForm {
  std::string name;
  std::vector<std::string> marks;
  // Between these, calls; each call but the first has `between` before it.
  std::string begin, between, end;
  // How a call is written: %n and %a stand for the name and the arguments.
  std::string call;

  std::string Call(const std::string& tool, const std::string& arguments) const {
    std::string text = call;
    text.replace(text.find("%n"), 2, tool);
    text.replace(text.find("%a"), 2, arguments);
    return text;
  }
  std::string Answer(const std::vector<std::pair<std::string, std::string>>& calls) const {
    std::string text = begin;
    for (std::size_t i = 0; i < calls.size(); ++i)
      text += (i == 0 ? "" : between) + Call(calls[i].first, calls[i].second);
    return text + end;
  }
};

const std::vector<NamedForm>& NamedForms() {
  static const std::vector<NamedForm> forms = {
      {"deepseek",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>"},
       "<｜tool▁calls▁begin｜>",
       "\n",
       "<｜tool▁calls▁end｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>%n\n```json\n%a\n```<｜tool▁call▁end｜>"},
      {"deepseek-v3.1",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>"},
       "<｜tool▁calls▁begin｜>",
       "",
       "<｜tool▁calls▁end｜>",
       "<｜tool▁call▁begin｜>%n<｜tool▁sep｜>%a<｜tool▁call▁end｜>"},
      {"kimi-k2",
       {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
        "<|tool_call_end|>", "<|tool_calls_section_end|>"},
       "<|tool_calls_section_begin|>",
       "",
       "<|tool_calls_section_end|>",
       "<|tool_call_begin|>functions.%n:12<|tool_call_argument_begin|>%a<|tool_call_end|>"},
      {"mistral", {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}, "", "", "", "[TOOL_CALLS]%n[ARGS]%a"},
      {"mistral",
       {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"},
       "",
       "",
       "",
       "[TOOL_CALLS]%n[CALL_ID]abcDEF123[ARGS]%a"},
      {"mistral-list",
       {"[TOOL_CALLS]"},
       "[TOOL_CALLS] [",
       ", ",
       "]",
       R"({"name": "%n", "arguments": %a, "id": "abcDEF123"})"},
      {"mistral-list",
       {"[TOOL_CALLS]"},
       "[TOOL_CALLS][",
       ", ",
       "]",
       R"({"name": "%n", "arguments": %a})"},
      {"granite",
       {"<|tool_call|>"},
       "<|tool_call|>[",
       ", ",
       "]",
       R"({"name": "%n", "arguments": %a})"},
      {"phi-4",
       {"<|tool_call|>", "<|/tool_call|>"},
       "<|tool_call|>[",
       ", ",
       "]<|/tool_call|>",
       R"({"name": "%n", "arguments": %a})"},
      {"phi-4",
       {"<|tool_call|>", "<|/tool_call|>"},
       "",
       "\n",
       "",
       R"(<|tool_call|>{"name": "%n", "arguments": %a}<|/tool_call|>)"},
      {"command-r",
       {"<|START_ACTION|>", "<|END_ACTION|>"},
       "<|START_ACTION|>[\n    ",
       ",\n    ",
       "\n]<|END_ACTION|>",
       R"({"tool_call_id": "0", "tool_name": "%n", "parameters": %a})"},
  };
  return forms;
}

const CallFormat& NamedRow(std::string_view name) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == name) return *row;
  throw std::invalid_argument(std::string(name));
}

// Vocabularies: no mark is a control token; all are; every second one is.
std::vector<ControlTokens> Vocabularies(const NamedForm& form) {
  std::vector<ControlTokens> all(3);
  for (std::size_t i = 0; i < form.marks.size(); ++i) {
    all[1].Add(form.marks[i], static_cast<std::int32_t>(100 + i));
    if (i % 2 == 0) all[2].Add(form.marks[i], static_cast<std::int32_t>(100 + i));
  }
  return all;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string WithControls(std::string text, const NamedForm& form, const ControlTokens& control) {
  for (const std::string& mark : form.marks)
    if (control.Has(mark)) text = Replaced(text, mark, ControlText(mark));
  return text;
}

NamedParts ReadPieces(const NamedForm& form, const ControlTokens& control, std::string_view answer,
                      std::size_t piece, const std::vector<Tool>& tools) {
  const auto reader = NamedRow(form.name).reader(tools, control);
  NamedParts all;
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    NamedParts parts;
    reader->Read(answer.substr(i, piece), parts);
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
  }
  NamedParts parts;
  reader->End(parts);
  for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
  return all;
}

NamedParts ReadNamed(const NamedForm& form, const ControlTokens& control, const std::string& answer,
                     const std::vector<Tool>& tools = kNamedTools) {
  const std::string text = WithControls(answer, form, control);
  const NamedParts whole = ReadPieces(form, control, text, text.size() + 1, tools);
  for (std::size_t piece = 1; piece < text.size(); ++piece)
    EXPECT_EQ(ReadPieces(form, control, text, piece, tools), whole) << form.name << " " << piece;
  return whole;
}

NamedParts PartsOf(const std::vector<std::pair<std::string, std::string>>& calls,
                   const std::string& before = {}, const std::string& behind = {}) {
  NamedParts parts;
  Add(parts, NamedKind::kText, before);
  for (const auto& [name, arguments] : calls) {
    Add(parts, NamedKind::kName, name);
    Add(parts, NamedKind::kArguments, arguments);
  }
  Add(parts, NamedKind::kText, behind);
  return parts;
}

// A character that stands for a control token where a grammar is tried.
std::string Private(std::size_t i) {
  return std::string("\xEE\x80") + static_cast<char>(0x80 + i);
}

std::string WithPrivates(std::string text, const NamedForm& form, const ControlTokens& control) {
  for (std::size_t i = 0; i < form.marks.size(); ++i)
    if (control.Has(form.marks[i])) text = Replaced(text, form.marks[i], Private(i));
  return text;
}

std::string WithPrivates(std::string gbnf, const NamedForm& form) {
  for (std::size_t i = 0; i < form.marks.size(); ++i)
    gbnf = Replaced(gbnf, "<[" + std::to_string(100 + i) + "]>", Quoted(Private(i)));
  return Replaced(gbnf, "free-0 ::= [^\\x00]", "free-0 ::= [^\\x00\\uE000-\\uE0FF]");
}

enum class Is { kAnswer, kBeginning, kNone };

Is TakesNamed(const std::string& gbnf, std::string_view text) {
  auto program = grammar::CompileGbnf(gbnf);
  EXPECT_TRUE(program) << program.error().message << "\n" << gbnf;
  if (!program) return Is::kNone;
  GrammarStates states(*std::move(program));
  GrammarStates::State state = states.Start();
  for (const char c : text) {
    if (state == GrammarStates::kOver) return Is::kNone;
    state = states.Next(state, static_cast<std::uint8_t>(c));
  }
  if (state == GrammarStates::kOver) return Is::kNone;
  return states.CanEnd(state) ? Is::kAnswer : Is::kBeginning;
}

const std::vector<std::pair<std::string, std::string>> kOneCall = {{"weather", kCity}},
                                                       kTwoCalls = {{"weather", kCity},
                                                                    {"now", "{}"}};

TEST(NamedFormats, ReadWhatTemplatesWrite) {
  for (const NamedForm& form : NamedForms())
    for (const ControlTokens& control : Vocabularies(form)) {
      EXPECT_EQ(ReadNamed(form, control, form.Answer(kOneCall)), PartsOf(kOneCall)) << form.name;
      EXPECT_EQ(ReadNamed(form, control, form.Answer(kTwoCalls)), PartsOf(kTwoCalls)) << form.name;
      EXPECT_EQ(ReadNamed(form, control, "I [look] <here>.\n\n" + form.Answer(kTwoCalls)),
                PartsOf(kTwoCalls, "I [look] <here>."))
          << form.name;
      EXPECT_EQ(ReadNamed(form, control, form.Answer(kOneCall) + "\n"), PartsOf(kOneCall));
      EXPECT_EQ(ReadNamed(form, control, form.Answer(kOneCall) + " Done."),
                PartsOf(kOneCall, "", " Done."))
          << form.name;
    }
}

TEST(NamedFormats, AllowWhatTheyRead) {
  for (const NamedForm& form : NamedForms())
    for (const ControlTokens& control : Vocabularies(form)) {
      const auto grammar = NamedRow(form.name).grammar({.tools = kNamedTools}, control);
      if (!grammar) GTEST_SKIP() << grammar.error().why();  // of control tokens
      const std::string gbnf = WithPrivates(grammar->gbnf, form);
      for (const std::string& text :
           {std::string(), std::string("Hello."),
            std::string("1 < 2 [TOOL_ <｜tool▁ca <｜<|too <|"),
            std::string("ä｜▁▁[[｜<｜tool▁calls▁begin｜"), form.Answer(kOneCall),
            "So. " + form.Answer(kOneCall), form.Answer(kTwoCalls)})
        EXPECT_EQ(TakesNamed(gbnf, WithPrivates(text, form, control)), Is::kAnswer)
            << form.name << " " << text;
      for (const std::string& text :
           {form.Answer({{"other", "{}"}}), form.Answer({{"weather", "{}"}}),
            form.Answer({{"weather", R"({"city": 1})"}}), form.Answer(kOneCall) + "and"})
        EXPECT_EQ(TakesNamed(gbnf, WithPrivates(text, form, control)), Is::kNone)
            << form.name << " " << text;
    }
}

TEST(NamedFormats, FollowWhatIsAskedOfCalls) {
  for (const NamedForm& form : NamedForms())
    for (const ControlTokens& control : Vocabularies(form)) {
      const CallFormat& row = NamedRow(form.name);
      const auto must = row.grammar({.tools = kNamedTools, .required = true}, control);
      const auto one = row.grammar({.tools = kNamedTools, .several = false}, control);
      const auto choice = row.grammar(
          {.tools = kNamedTools,
           .text_grammar = ChoiceGrammar(std::vector<std::string>{"yes", "no"}).value()},
          control);
      if (!must || !one || !choice) GTEST_SKIP();  // of control tokens
      const std::string forced = WithPrivates(must->gbnf, form),
                        single = WithPrivates(one->gbnf, form),
                        closed = WithPrivates(choice->gbnf, form);
      EXPECT_EQ(TakesNamed(forced, WithPrivates(form.Answer(kTwoCalls), form, control)),
                Is::kAnswer)
          << form.name;
      EXPECT_EQ(TakesNamed(forced, ""), Is::kBeginning) << form.name;
      EXPECT_EQ(TakesNamed(forced, "Hello"), Is::kNone) << form.name;
      EXPECT_EQ(TakesNamed(single, WithPrivates(form.Answer(kOneCall), form, control)), Is::kAnswer)
          << form.name;
      EXPECT_EQ(TakesNamed(single, WithPrivates(form.Answer(kTwoCalls), form, control)), Is::kNone)
          << form.name;
      EXPECT_EQ(TakesNamed(closed, WithPrivates(form.Answer(kOneCall), form, control)), Is::kAnswer)
          << form.name;
      EXPECT_EQ(TakesNamed(closed, "yes"), Is::kAnswer) << form.name;
      EXPECT_EQ(TakesNamed(closed, "maybe"), Is::kNone) << form.name;
    }
}

// Names that hold what a form writes around names.
TEST(NamedFormats, ReadOddNamesAsTheGrammarAllowsThem) {
  const std::vector<Tool> tools = {{"a b"},      {" x\n"},   {"f:1"}, {"functions.g"},
                                   {"a[ARGS]b"}, {"l\nm{"},  {"<｜"}, {"[CALL_ID]"},
                                   {"ä::0"},     {"```json"}};
  for (const NamedForm& form : NamedForms()) {
    if (form.call.find("\"%n\"") != form.call.npos) continue;  // the name is a JSON text there
    for (const ControlTokens& control : Vocabularies(form)) {
      NamedForm read = form, written = form;
      for (std::string NamedForm::*const text :
           {&NamedForm::begin, &NamedForm::between, &NamedForm::end, &NamedForm::call}) {
        read.*text = WithControls(read.*text, form, control);
        written.*text = WithPrivates(written.*text, form, control);
      }
      const auto grammar = NamedRow(form.name).grammar({.tools = tools}, control);
      for (const Tool& tool : tools) {
        const std::vector<std::pair<std::string, std::string>> calls = {{tool.name, "{}"},
                                                                        {tools[0].name, "{}"}};
        const std::string answer = read.Answer(calls);
        for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, answer.size()})
          EXPECT_EQ(ReadPieces(form, control, answer, piece, tools), PartsOf(calls))
              << form.name << " " << tool.name;
        if (!grammar) continue;  // of control tokens
        EXPECT_EQ(TakesNamed(WithPrivates(grammar->gbnf, form), written.Answer(calls)), Is::kAnswer)
            << form.name << " " << tool.name;
      }
    }
  }
}

// Wherever an answer ends, what has come of a call stays, and text stays as it is.
TEST(NamedFormats, KeepWhatAnEndLeaves) {
  for (const NamedForm& form : NamedForms())
    for (const ControlTokens& control : Vocabularies(form)) {
      const std::string answer = WithControls("Yes. " + form.Answer(kTwoCalls), form, control);
      std::size_t n_before = 0;
      for (std::size_t size = 0; size <= answer.size(); ++size) {
        const std::string text = answer.substr(0, size);
        const NamedParts whole = ReadPieces(form, control, text, size + 1, kNamedTools);
        EXPECT_EQ(ReadPieces(form, control, text, 1, kNamedTools), whole) << form.name << size;
        const auto n_names = static_cast<std::size_t>(
            std::count_if(whole.begin(), whole.end(),
                          [](const AnswerPart& part) { return part.kind == NamedKind::kName; }));
        EXPECT_GE(n_names, n_before) << form.name << " " << size;
        n_before = n_names;
        if (n_names == 0)
          EXPECT_EQ(whole, PartsOf({}, text)) << form.name << " " << size;
        else
          EXPECT_EQ(whole[0].text, "Yes.") << form.name << " " << size;
        const bool text_behind =
            n_names > 0 && std::any_of(whole.begin() + 1, whole.end(), [](const AnswerPart& part) {
              return part.kind == NamedKind::kText;
            });
        EXPECT_FALSE(text_behind) << form.name << " " << size;
      }
      EXPECT_EQ(n_before, 2u);
    }
}

TEST(NamedFormats, TakeWhatIsNoCallForText) {
  const std::map<std::string, std::vector<std::string>> texts = {
      {"deepseek",
       {"<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜> and",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n{}",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n[1]\n```"}},
      {"deepseek-v3.1",
       {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>{}",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>3"}},
      {"kimi-k2",
       {"<|tool_calls_section_begin|><|tool_calls_section_end|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0\n{}"}},
      {"mistral",
       {"[TOOL_CALLS]", "[TOOL_CALLS]now", "[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS]now[ARGS]no",
        "[TOOL_CALLS]a\nlist[ARGS]{}", "[TOOL_CALLS] [{\"name\": \"now\"}]"}},
      {"mistral-list", {"[TOOL_CALLS]now[ARGS]{}", "[TOOL_CALLS] [1]"}}};
  for (const NamedForm& form : NamedForms())
    for (const ControlTokens& control : Vocabularies(form)) {
      const auto found = texts.find(form.name);
      if (found == texts.end()) continue;
      for (const std::string& text : found->second)
        EXPECT_EQ(ReadNamed(form, control, text), PartsOf({}, WithControls(text, form, control)))
            << form.name << " " << text;
    }
}

TEST(NamedFormats, BeginAgainBehindWhatIsNoCall) {
  for (const NamedForm& form : NamedForms()) {
    if (form.name.starts_with("mistral")) continue;
    for (const ControlTokens& control : Vocabularies(form)) {
      const std::string mark = form.marks[0];
      EXPECT_EQ(ReadNamed(form, control, mark + " no. " + form.Answer(kTwoCalls)),
                PartsOf(kTwoCalls, WithControls(mark, form, control) + " no."))
          << form.name;
    }
  }
}

TEST(NamedFormats, AllowForWhiteSpaceAndForNamesThatAreNoTools) {
  EXPECT_EQ(ReadNamed(NamedForms()[0], {},
                      "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜> odd "
                      "\n```json\n\n{\n}\n```\n<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>\n"),
            PartsOf({{"odd", "{\n}"}}));
  EXPECT_EQ(ReadNamed(NamedForms()[2], {},
                      "<|tool_calls_section_begin|><|tool_call_begin|>call_7 "
                      "<|tool_call_argument_begin|> {}<|tool_call_end|><|tool_calls_section_end|>"),
            PartsOf({{"call_7", "{}"}}));
  EXPECT_EQ(ReadNamed(NamedForms()[3], {}, "[TOOL_CALLS]\nnow [ARGS] {\"a\": [{}]}"),
            PartsOf({{"now", R"({"a": [{}]})"}}));
}

// Otherwise a model that begins its texts so could only call.
TEST(NamedFormats, LetCommandModelsWriteTheirMarksOfTexts) {
  const NamedForm form = {
      "command-r", {"<|START_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"}, "", "", "", ""};
  const ControlTokens control = Vocabularies(form)[1];
  const CallFormat& row = NamedRow("command-r");
  const auto free = row.grammar({.tools = kNamedTools}, control);
  const auto choice =
      row.grammar({.tools = kNamedTools,
                   .text_grammar = ChoiceGrammar(std::vector<std::string>{"yes", "no"}).value()},
                  control);
  if (!free || !choice) GTEST_SKIP();  // of control tokens
  for (const std::string& text : {std::string("yes"), Private(1) + "yes" + Private(2)}) {
    EXPECT_EQ(TakesNamed(WithPrivates(free->gbnf, form), text), Is::kAnswer) << text;
    EXPECT_EQ(TakesNamed(WithPrivates(choice->gbnf, form), text), Is::kAnswer) << text;
  }
  EXPECT_EQ(TakesNamed(WithPrivates(free->gbnf, form), "a" + Private(1)), Is::kNone);
  EXPECT_EQ(TakesNamed(WithPrivates(free->gbnf, form), Private(0) + "[{"), Is::kBeginning);
}

TEST(NamedFormats, ReadListsOfOneCallWithoutBrackets) {
  const std::map<std::string, std::string> answers = {
      {"nemotron", R"(<TOOLCALL>{"name": "now", "arguments": {}}</TOOLCALL>)"},
      {"granite", R"(<|tool_call|>{"name": "now", "arguments": {}})"},
      {"command-r", R"(<|START_ACTION|>{"tool_name": "now", "parameters": {}}<|END_ACTION|>)"}};
  for (const auto& [name, answer] : answers)
    EXPECT_EQ(ReadNamed({name, {}, "", "", "", ""}, {}, answer + " So."),
              PartsOf({{"now", "{}"}}, "", " So."))
        << name;
}

TEST(NamedFormats, AreReadInTimeThatGrowsWithTheAnswer) {
  for (const NamedForm& form : NamedForms()) {
    std::string marks, deep = form.Answer({{"now", std::string(50000, '{')}});
    while (marks.size() < 100000) marks += form.marks[0];
    for (const std::string& text : {marks, deep, form.marks[0] + std::string(100000, ' '),
                                    form.marks[0] + std::string(100000, 'a'),
                                    form.Answer(kOneCall) + std::string(100000, '\n')})
      ReadPieces(form, {}, text, 7, kNamedTools);
  }
}

TEST(NamedFormats, AreKnownByWhatTemplatesWrite) {
  const std::map<std::string, std::string> probes = {
      {"<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>probe_"
       "tool\n"
       "```json\n{\"probe_key\": \"probe value\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "deepseek"},
      {"<｜Assistant｜></think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>probe_tool<｜tool▁sep｜>"
       "{\"probe_key\": \"probe value\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "deepseek-v3.1"},
      {"<|tool_calls_section_begin|><|tool_call_begin|>call00001<|tool_call_argument_begin|>"
       "{\"probe_key\": \"probe value\"}<|tool_call_end|><|tool_calls_section_end|>",
       "kimi-k2"},
      {"<|im_system|>tool_declare<|im_middle|>[{\"type\": \"function\"}]<|im_end|>", "kimi-k2"},
      {"function<｜tool▁sep｜>example_function_name\n```json\n", "deepseek"},
      {"[TOOL_CALLS]probe_tool[ARGS]{\"probe_key\": \"probe value\"}</s>", "mistral"},
      {"[TOOL_CALLS]probe_tool[CALL_ID]call00001[ARGS]{\"probe_key\": \"probe value\"}</s>",
       "mistral"},
      {"[TOOL_CALLS][{\"name\": \"probe_tool\", \"arguments\": {\"probe_key\": \"probe value\"}, "
       "\"id\": \"call00001\"}]</s>",
       "mistral-list"},
      {"[TOOL_CALLS] [{\"name\": \"probe_tool\", \"arguments\": {\"probe_key\": \"probe value\"}, "
       "\"id\": \"call00001\"}]</s>",
       "mistral-list"},
      {"respond only with <|tool_call|> followed by a JSON list of tools used.", "granite"},
      {"respond in this format: <|tool_call|>{\"name\": \"foo\", \"arguments\": {\"a\": 1}}"
       "<|/tool_call|>",
       "phi-4"},
      {"<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"probe_tool\", "
       "\"parameters\": {\"probe_key\": \"probe value\"}}\n]<|END_ACTION|>",
       "command-r"},
      {"<tool_call>\n{\"name\": \"probe_tool\", \"arguments\": {}}\n</tool_call>", "hermes"},
      {"<tool_call>\n<function=probe_tool>\n", "qwen-coder"},
      {"<TOOLCALL>[{\"name\": \"probe_tool\"}]</TOOLCALL>", "nemotron"},
      {"{\"name\": \"probe_tool\", \"parameters\": {\"probe_key\": \"probe value\"}}", "llama"}};
  for (const auto& [text, name] : probes)
    ExpectWrote(name, text, name == "qwen-coder" ? 2 : 1);  // its tags stand in marks of hermes
}

TEST(TextUntil, KnowsMarksOfAnyCharacters) {
  const std::string mark = "｜a｜｜a▁";
  const std::string gbnf = "root ::= t-0\n" + TextUntil("t", mark, "\"!\"", true);
  for (const char* const text :
       {"", "x", "｜", "｜a｜", "｜a｜a｜", "ａ▁｜a｜｜｜", "￼｝", "｜a｜｜a｜▁"})
    EXPECT_EQ(TakesNamed(gbnf, text), Is::kAnswer) << text;
  for (const std::string before : {"", "x", "｜", "｜a｜", "｜a｜｜a", "｜a｜a"}) {
    EXPECT_EQ(TakesNamed(gbnf, before + mark), Is::kBeginning) << before;
    EXPECT_EQ(TakesNamed(gbnf, before + mark + "!"), Is::kAnswer) << before;
    EXPECT_EQ(TakesNamed(gbnf, before + mark + "x"), Is::kNone) << before;
  }
}

}  // namespace
}  // namespace foretoken::calls::named_format
