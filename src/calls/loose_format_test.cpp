// SPDX-License-Identifier: Apache-2.0
// Calls in Python and Gemma's notation: what readers make of them, and what their grammars allow.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/control_text.h"
#include "calls/call_format.h"
#include "grammar/control_literal.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {
namespace {

using enum AnswerPart::Kind;
using AnswerParts = std::vector<AnswerPart>;

const std::vector<Tool> kLooseTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},)"
     R"( "exact": {"type": "boolean"}, "unit": {"enum": ["C", "F"]}, "where": {"type": "object"},)"
     R"( "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["city"]})"},
    {"now"}};
const std::vector<std::string> kLooseMarks = {
    "<|tool_call_start|>",   "<|tool_call_end|>",   "<|tool_call>", "<tool_call|>", "<|\"|>",
    "<start_function_call>", "<end_function_call>", "<escape>"};

const CallFormat& Loose(std::string_view name) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == name) return *row;
  throw std::invalid_argument(std::string(name));
}

ControlTokens LooseControl(bool any) {
  ControlTokens control;
  for (std::size_t i = 0; any && i < kLooseMarks.size(); ++i)
    control.Add(kLooseMarks[i], static_cast<std::int32_t>(i));
  return control;
}

template <typename Write>
std::string WithLooseMarks(std::string text, const Write& write) {
  for (std::size_t i = 0; i < kLooseMarks.size(); ++i)
    for (std::size_t at = 0; (at = text.find(kLooseMarks[i], at)) != text.npos;) {
      const std::string written = write(i);
      text.replace(at, kLooseMarks[i].size(), written);
      at += written.size();
    }
  return text;
}

AnswerParts LooseParts(std::string_view format, const std::string& answer, bool control) {
  const std::string text =
      control ? WithLooseMarks(answer, [](std::size_t i) { return ControlText(kLooseMarks[i]); })
              : answer;
  AnswerParts whole;
  for (std::size_t piece = text.size() + 1; piece > 0; --piece) {
    const auto reader = Loose(format).reader(kLooseTools, LooseControl(control));
    AnswerParts all;
    const auto take = [&](const AnswerParts& parts) {
      for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    };
    for (std::size_t i = 0; i < text.size(); i += piece) {
      AnswerParts parts;
      reader->Read(std::string_view(text).substr(i, piece), parts);
      take(parts);
    }
    AnswerParts parts;
    reader->End(parts);
    take(parts);
    if (piece > text.size()) whole = all;
    EXPECT_EQ(all, whole) << piece;
  }
  return whole;
}

AnswerParts LooseParts(std::string_view format, const std::string& answer) {
  const AnswerParts parts = LooseParts(format, answer, false);
  EXPECT_EQ(LooseParts(format, answer, true), parts) << answer;
  return parts;
}

AnswerParts LooseCall(const std::string& arguments) {
  return {{kName, "weather"}, {kArguments, arguments}};
}

std::string Lfm(const std::string& calls) {
  return "<|tool_call_start|>[" + calls + "]<|tool_call_end|>";
}

TEST(PythonCalls, BecomeJson) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(weather(city="Rome", days=2))", R"({"city": "Rome", "days": 2})"},
      {R"(weather(city='it\'s "so"', exact=True))", R"({"city": "it's \"so\"", "exact": true})"},
      {R"(weather(city = "a\n\x41\u00e9\U0001F600\q", days=-1.5e3))",
       R"({"city": "a\n\u0041\u00e9\ud83d\ude00\\q", "days": -1.5e3})"},
      {R"(weather(tags=["a", 'b',], where={"x": [1, (2, None)], 'y': {}}, days=1_000))",
       R"({"tags": ["a", "b"], "where": {"x": [1, [2, null]], "y": {}}, "days": 1000})"},
      {R"(weather("Rome", 3, False))", R"({"city": "Rome", "days": 3, "exact": false})"},
      {R"(weather(city=Rome, days=.5))", R"({"city": "Rome", "days": 0.5})"},
      {"weather( )", "{}"},
      {R"(weather(city="]<|x|>)(,="))", R"({"city": "]<|x|>)(,="})"}};
  for (const auto& [call, json] : cases) {
    EXPECT_EQ(LooseParts("lfm2", Lfm(call)), LooseCall(json)) << call;
    EXPECT_EQ(LooseParts("python", "[" + std::string(call) + "]"), LooseCall(json)) << call;
  }
}

TEST(PythonCalls, MayBeSeveralWithTextAround) {
  EXPECT_EQ(LooseParts("lfm2", "I look. " + Lfm(R"(weather(city="R"), now())") + "Well."),
            (AnswerParts{{kText, "I look."},
                         {kName, "weather"},
                         {kArguments, R"({"city": "R"})"},
                         {kName, "now"},
                         {kArguments, "{}"},
                         {kText, "Well."}}));
  EXPECT_EQ(LooseParts("lfm2", Lfm("now()") + Lfm("now()")),
            (AnswerParts{{kName, "now"}, {kArguments, "{}"}, {kName, "now"}, {kArguments, "{}"}}));
}

TEST(PythonCalls, LeaveOtherTextsAsTheyAre) {
  for (const char* const text :
       {"[1] says (so)", "[weather] is", "[wind(x=1)]", "no [now()]", "[", ""})
    EXPECT_EQ(LooseParts("python", text),
              *text == 0 ? AnswerParts() : AnswerParts({{kText, text}}));
  EXPECT_EQ(LooseParts("lfm2", "a <|tool_call_sta"), AnswerParts({{kText, "a <|tool_call_sta"}}));
}

TEST(PythonCalls, CutAnywhereKeepWhatCame) {
  const AnswerParts cut = LooseParts("lfm2", "<|tool_call_start|>[weather(city=\"Ro");
  EXPECT_EQ(cut, LooseCall(R"({"city": "Ro)"));
}

TEST(GemmaCalls, BecomeJson) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({city:<|"|>Rome "<|<|"|>,days:2})", R"({"city": "Rome \"<|", "days": 2})"},
      {R"({exact:true,tags:[<|"|>a <|"|>,<|"|>b<|"|>],where:{x:{y:null}, z:[]}})",
       R"({"exact": true, "tags": ["a ", "b"], "where": {"x": {"y": null}, "z": []}})"},
      {R"({where:{<|"|>k<|"|>:<|"|>v<|"|>}, tags: ["a"]})",
       R"({"where": {"k": "v"}, "tags": ["a"]})"},
      {"{}", "{}"}};
  for (const auto& [arguments, json] : cases) {
    EXPECT_EQ(
        LooseParts("gemma", "<|tool_call>call:weather" + std::string(arguments) + "<tool_call|>"),
        LooseCall(json))
        << arguments;
  }
  EXPECT_EQ(LooseParts("function-gemma",
                       "<start_function_call>call:weather{city:<escape>a, b<escape>}"
                       "<end_function_call>"),
            LooseCall(R"({"city": "a, b"})"));
}

bool LooseAllows(std::string_view format, const ToolUse& use, const std::string& answer,
                 bool control) {
  const auto grammar = Loose(format).grammar(use, LooseControl(control));
  EXPECT_TRUE(grammar) << grammar.error().message;
  auto program = grammar::CompileGbnf(grammar->gbnf);
  EXPECT_TRUE(program) << program.error().message << grammar->gbnf;
  grammar::GrammarStates states(*std::move(program));
  auto state = states.Start();
  const std::string text =
      control ? WithLooseMarks(
                    answer,
                    [](std::size_t i) { return grammar::ControlLiteral(static_cast<Token>(i)); })
              : answer;
  for (const char c : text)
    if (state != grammar::GrammarStates::kOver)
      state = states.Next(state, static_cast<std::uint8_t>(c));
  return state != grammar::GrammarStates::kOver && states.CanEnd(state);
}

TEST(LooseGrammars, HoldCallsToTheSchemas) {
  struct Case {
    const char *format, *call;
    bool allowed;
  };
  const Case cases[] = {
      {"lfm2", R"(weather(city="Rome"))", true},
      {"lfm2", R"(weather(city="Rome", days=2, exact=True, unit="C"))", true},
      {"lfm2", R"(weather(city="Rome", exact=False, tags=["a"]))", true},
      {"lfm2", "now()", true},
      {"lfm2", R"(weather(city="Rome", exact=true))", false},
      {"lfm2", "weather()", false},
      {"lfm2", R"(weather(days=2))", false},
      {"lfm2", R"(weather(city="Rome", unit="K"))", false},
      {"lfm2", R"(weather(, city="Rome"))", false},
      {"lfm2", "wind()", false},
      {"gemma", R"({city:<|"|>Rome, "x"<|"|>})", true},
      {"gemma", R"({city:<|"|>Rome<|"|>,days:2,exact:true,unit:<|"|>C<|"|>})", true},
      {"gemma", R"({city:<|"|>Rome<|"|>,unit:<|"|>K<|"|>})", false},
      {"gemma", R"({days:2})", false}};
  for (const bool control : {false, true})
    for (const Case& c : cases) {
      const bool gemma = c.format == std::string_view("gemma");
      const std::string answer =
          gemma ? "<|tool_call>call:weather" + std::string(c.call) + "<tool_call|>" : Lfm(c.call);
      for (const bool required : {false, true})
        EXPECT_EQ(
            LooseAllows(c.format, {.tools = kLooseTools, .required = required}, answer, control),
            c.allowed)
            << c.call;
      EXPECT_TRUE(LooseAllows(c.format, {.tools = kLooseTools}, "A text [with] (all).", control));
      EXPECT_EQ(
          LooseAllows(c.format, {.tools = kLooseTools, .several = false}, answer + answer, control),
          false);
    }
  const ToolUse use = {.tools = kLooseTools};
  EXPECT_TRUE(LooseAllows("python", use, "[now(), now()]", false));
  EXPECT_TRUE(LooseAllows("python", use, "Hello [now()]", false));
  EXPECT_FALSE(LooseAllows("python", use, "[hello]", false));
  EXPECT_TRUE(LooseAllows("lfm2", use, Lfm("now(), now()"), true));
}

}  // namespace
}  // namespace foretoken::calls
