// SPDX-License-Identifier: Apache-2.0
// Calls as a name, a separator and JSON between marks, and lists of JSON behind one mark: what the
// grammars allow, the readers take out, whichever marks are control tokens.

#include <algorithm>
#include <map>

#include "calls/answer_grammar.h"
#include "calls/form_testing.h"

namespace foretoken::calls::named_format {
namespace {

using NamedKind = AnswerPart::Kind;

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
  std::string Answer(const Calls& calls) const {
    std::string text = begin;
    for (std::size_t i = 0; i < calls.size(); ++i)
      text += (i == 0 ? "" : between) + Call(calls[i].first, calls[i].second);
    return text + end;
  }
  std::vector<FormTesting> All() const { return FormTesting::All(name, marks); }
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

const Calls kOneCall = {{"weather", kCity}}, kTwoCalls = {{"weather", kCity}, {"now", "{}"}};

TEST(NamedFormats, ReadWhatTemplatesWrite) {
  for (const NamedForm& form : NamedForms())
    for (const FormTesting& testing : form.All()) {
      const std::string one = form.Answer(kOneCall), two = form.Answer(kTwoCalls);
      EXPECT_EQ(testing.Read(one, kNamedTools), PartsOf(kOneCall)) << form.name;
      EXPECT_EQ(testing.Read(two, kNamedTools), PartsOf(kTwoCalls)) << form.name;
      EXPECT_EQ(testing.Read("I [look] <here>.\n\n" + two, kNamedTools),
                PartsOf(kTwoCalls, "I [look] <here>."))
          << form.name;
      EXPECT_EQ(testing.Read(one + "\n", kNamedTools), PartsOf(kOneCall)) << form.name;
      EXPECT_EQ(testing.Read(one + " Done.", kNamedTools), PartsOf(kOneCall, "", " Done."))
          << form.name;
    }
}

TEST(NamedFormats, AllowWhatTheyRead) {
  for (const NamedForm& form : NamedForms())
    for (const FormTesting& testing : form.All()) {
      const std::string gbnf = testing.Grammar({.tools = kNamedTools}).gbnf;
      for (const std::string& text :
           {std::string(), std::string("Hello."),
            std::string("1 < 2 [TOOL_ <｜tool▁ca <｜<|too <|"),
            std::string("ä｜▁▁[[｜<｜tool▁calls▁begin｜"), form.Answer(kOneCall),
            "So. " + form.Answer(kOneCall), form.Answer(kTwoCalls)})
        EXPECT_TRUE(testing.Takes(gbnf, text)) << form.name << " " << text;
      for (const std::string& text :
           {form.Answer({{"other", "{}"}}), form.Answer({{"weather", "{}"}}),
            form.Answer({{"weather", R"({"city": 1})"}}), form.Answer(kOneCall) + "and"})
        EXPECT_EQ(testing.WhatIs(gbnf, text), Is::kNone) << form.name << " " << text;
    }
}

TEST(NamedFormats, FollowWhatIsAskedOfCalls) {
  for (const NamedForm& form : NamedForms())
    for (const FormTesting& testing : form.All())
      ExpectFollowsWhatIsAsked(testing, kNamedTools, form.Answer(kOneCall), form.Answer(kTwoCalls));
}

// Names that hold what a form writes around names.
TEST(NamedFormats, ReadOddNamesAsTheGrammarAllowsThem) {
  const std::vector<Tool> tools = {{"a b"},      {" x\n"},   {"f:1"}, {"functions.g"},
                                   {"a[ARGS]b"}, {"l\nm{"},  {"<｜"}, {"[CALL_ID]"},
                                   {"ä::0"},     {"```json"}};
  for (const NamedForm& form : NamedForms()) {
    if (form.call.find("\"%n\"") != form.call.npos) continue;  // the name is a JSON text there
    for (const FormTesting& testing : form.All()) {
      NamedForm read = form, written = form;
      for (std::string NamedForm::*const text :
           {&NamedForm::begin, &NamedForm::between, &NamedForm::end, &NamedForm::call}) {
        read.*text = testing.ForReader(read.*text);
        written.*text = testing.ForGrammar(written.*text);
      }
      const std::string gbnf = testing.Grammar({.tools = tools}).gbnf;
      for (const Tool& tool : tools) {
        const Calls calls = {{tool.name, "{}"}, {tools[0].name, "{}"}};
        const std::string answer = read.Answer(calls);
        for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, answer.size()})
          EXPECT_EQ(testing.ReadIn(piece, answer, tools), PartsOf(calls))
              << form.name << " " << tool.name;
        EXPECT_TRUE(Takes(gbnf, written.Answer(calls))) << form.name << " " << tool.name;
      }
    }
  }
}

// Wherever an answer ends, what has come of a call stays, and text stays as it is.
TEST(NamedFormats, KeepWhatAnEndLeaves) {
  for (const NamedForm& form : NamedForms())
    for (const FormTesting& testing : form.All()) {
      const std::string answer = testing.ForReader("Yes. " + form.Answer(kTwoCalls));
      std::ptrdiff_t n_before = 0;
      for (std::size_t size = 0; size <= answer.size(); ++size) {
        const std::string text = answer.substr(0, size);
        const AnswerParts whole = testing.ReadIn(size + 1, text, kNamedTools);
        EXPECT_EQ(testing.ReadIn(1, text, kNamedTools), whole) << form.name << size;
        const auto n_names = std::count_if(whole.begin(), whole.end(), [](const AnswerPart& part) {
          return part.kind == NamedKind::kName;
        });
        EXPECT_GE(n_names, n_before) << form.name << " " << size;
        n_before = n_names;
        if (n_names == 0)
          EXPECT_EQ(whole, TextOf(text)) << form.name << " " << size;
        else
          EXPECT_EQ(whole[0].text, "Yes.") << form.name << " " << size;
        const bool text_behind =
            n_names > 0 && std::any_of(whole.begin() + 1, whole.end(), [](const AnswerPart& part) {
              return part.kind == NamedKind::kText;
            });
        EXPECT_FALSE(text_behind) << form.name << " " << size;
      }
      EXPECT_EQ(n_before, 2);
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
    for (const FormTesting& testing : form.All())
      if (const auto found = texts.find(form.name); found != texts.end())
        for (const std::string& text : found->second)
          EXPECT_EQ(testing.Read(text, kNamedTools), TextOf(testing.ForReader(text)))
              << form.name << " " << text;
}

TEST(NamedFormats, BeginAgainBehindWhatIsNoCall) {
  for (const NamedForm& form : NamedForms()) {
    if (form.name.starts_with("mistral")) continue;
    for (const FormTesting& testing : form.All())
      EXPECT_EQ(testing.Read(form.marks[0] + " no. " + form.Answer(kTwoCalls), kNamedTools),
                PartsOf(kTwoCalls, testing.ForReader(form.marks[0]) + " no."))
          << form.name;
  }
}

TEST(NamedFormats, AllowForWhiteSpaceAndForNamesThatAreNoTools) {
  EXPECT_EQ(NamedForms()[0].All()[0].Read(
                "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜> odd "
                "\n```json\n\n{\n}\n```\n<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>\n",
                kNamedTools),
            PartsOf({{"odd", "{\n}"}}));
  EXPECT_EQ(NamedForms()[2].All()[0].Read(
                "<|tool_calls_section_begin|><|tool_call_begin|>call_7 "
                "<|tool_call_argument_begin|> {}<|tool_call_end|><|tool_calls_section_end|>",
                kNamedTools),
            PartsOf({{"call_7", "{}"}}));
  EXPECT_EQ(NamedForms()[3].All()[0].Read("[TOOL_CALLS]\nnow [ARGS] {\"a\": [{}]}", kNamedTools),
            PartsOf({{"now", R"({"a": [{}]})"}}));
}

// Otherwise a model that begins its texts so could only call.
TEST(NamedFormats, LetCommandModelsWriteTheirMarksOfTexts) {
  const FormTesting form = FormTesting::All(
      "command-r", {"<|START_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"})[1];
  const std::string choice = ChoiceGrammar(std::vector<std::string>{"yes", "no"}).value(),
                    free = form.Grammar({.tools = kNamedTools}).gbnf,
                    closed = form.Grammar({.tools = kNamedTools, .text_grammar = choice}).gbnf;
  for (const char* const text : {"yes", "<|START_RESPONSE|>yes<|END_RESPONSE|>"}) {
    EXPECT_TRUE(form.Takes(free, text)) << text;
    EXPECT_TRUE(form.Takes(closed, text)) << text;
  }
  EXPECT_EQ(form.WhatIs(free, "a<|START_RESPONSE|>"), Is::kNone);
  EXPECT_EQ(form.WhatIs(free, "<|START_ACTION|>[{"), Is::kBeginning);
}

TEST(NamedFormats, ReadListsOfOneCallWithoutBrackets) {
  const std::map<std::string, std::string> answers = {
      {"nemotron", R"(<TOOLCALL>{"name": "now", "arguments": {}}</TOOLCALL>)"},
      {"granite", R"(<|tool_call|>{"name": "now", "arguments": {}})"},
      {"command-r", R"(<|START_ACTION|>{"tool_name": "now", "parameters": {}}<|END_ACTION|>)"}};
  for (const auto& [name, answer] : answers)
    EXPECT_EQ(FormTesting(name, {}, {}).Read(answer + " So.", kNamedTools),
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
      form.All()[0].ReadIn(7, text, kNamedTools);
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
    EXPECT_TRUE(Takes(gbnf, text)) << text;
  for (const std::string before : {"", "x", "｜", "｜a｜", "｜a｜｜a", "｜a｜a"}) {
    EXPECT_EQ(WhatIs(gbnf, before + mark), Is::kBeginning) << before;
    EXPECT_TRUE(Takes(gbnf, before + mark + "!")) << before;
    EXPECT_EQ(WhatIs(gbnf, before + mark + "x"), Is::kNone) << before;
  }
}

}  // namespace
}  // namespace foretoken::calls::named_format
