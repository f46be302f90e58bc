// SPDX-License-Identifier: Apache-2.0
// Forms with a tag for each argument: what their readers and grammars make of one call.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/control_text.h"
#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {
namespace {

using TagKind = AnswerPart::Kind;
using TagParts = std::vector<AnswerPart>;

const std::vector<Tool> kTagTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},)"
     R"( "more": {"type": "object"}}, "required": ["city"]})"},
    {"now"}};

// How a form writes calls, by hand. CITY, DAYS and MORE stand for values.
struct Written {
  std::string form, weather, now;    // without marks around them
  std::string open, between, close;  // around calls and between two
  std::vector<std::string> tokens;   // that may be control tokens
};

const std::vector<Written> kWritten = {
    {"qwen-coder",
     "<function=weather>\n<parameter=city>\nCITY\n</parameter>\n<parameter=days>\nDAYS\n"
     "</parameter>\n<parameter=more>\nMORE\n</parameter>\n</function>",
     "<function=now>\n</function>",
     "<tool_call>\n",
     "\n</tool_call>\n<tool_call>\n",
     "\n</tool_call>",
     {"<tool_call>", "</tool_call>", "</parameter>", "</function>"}},
    {"seed-oss",
     "<function=weather>\n<parameter=city>CITY</parameter>\n<parameter=days>DAYS</parameter>\n"
     "<parameter=more>MORE</parameter>\n</function>",
     "<function=now>\n</function>",
     "<seed:tool_call>\n",
     "\n</seed:tool_call>\n<seed:tool_call>\n",
     "\n</seed:tool_call>",
     {"<seed:tool_call>", "</seed:tool_call>", "</parameter>"}},
    {"minimax-m2",
     "<invoke name=\"weather\">\n<parameter name=\"city\">CITY</parameter>\n"
     "<parameter name=\"days\">DAYS</parameter>\n<parameter name=\"more\">MORE</parameter>\n"
     "</invoke>",
     "<invoke name=\"now\">\n</invoke>",
     "<minimax:tool_call>\n",
     "\n",
     "\n</minimax:tool_call>",
     {"<minimax:tool_call>", "</minimax:tool_call>"}},
    {"glm",
     "weather\n<arg_key>city</arg_key>\n<arg_value>CITY</arg_value>\n<arg_key>days</arg_key>\n"
     "<arg_value>DAYS</arg_value>\n<arg_key>more</arg_key>\n<arg_value>MORE</arg_value>",
     "now",
     "<tool_call>",
     "\n</tool_call>\n<tool_call>",
     "\n</tool_call>",
     {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}},
    {"glm",
     "weather<arg_key>city</arg_key><arg_value>CITY</arg_value><arg_key>days</arg_key>"
     "<arg_value>DAYS</arg_value><arg_key>more</arg_key><arg_value>MORE</arg_value>",
     "now",
     "<tool_call>",
     "</tool_call><tool_call>",
     "</tool_call>",
     {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}},
    {"deepseek-v3.2",
     "<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">CITY"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">DAYS"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"more\" string=\"false\">MORE"
     "</｜DSML｜parameter>\n</｜DSML｜invoke>",
     "<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>",
     "<｜DSML｜function_calls>\n",
     "\n",
     "\n</｜DSML｜function_calls>",
     {"｜DSML｜"}}};

const CallFormat& TagForm(std::string_view name) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == name) return *row;
  throw std::invalid_argument(std::string(name));
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string WithControls(std::string text, const Written& form) {
  for (const std::string& token : form.tokens) text = Replaced(text, token, ControlText(token));
  return text;
}

ControlTokens ControlsOf(const Written& form) {
  ControlTokens control;
  for (std::size_t i = 0; i < form.tokens.size(); ++i)
    control.Add(form.tokens[i], static_cast<std::int32_t>(100 + i));
  return control;
}

TagParts ReadTags(const CallFormat& form, const ControlTokens& control, std::string_view answer) {
  std::optional<TagParts> first;
  for (std::size_t piece = 1; piece <= answer.size(); piece = piece < 12 ? piece + 1 : piece * 2) {
    const auto reader = form.reader(kTagTools, control);
    TagParts all;
    for (std::size_t i = 0; i < answer.size(); i += piece) {
      TagParts parts;
      reader->Read(answer.substr(i, piece), parts);
      for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    }
    TagParts parts;
    reader->End(parts);
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    if (!first) first = all;
    EXPECT_EQ(all, *first) << form.name << piece;
  }
  return first.value_or(TagParts());
}

bool TakesTags(const std::string& gbnf, std::string_view text) {
  auto program = grammar::CompileGbnf(gbnf);
  EXPECT_TRUE(program) << program.error().message << "\n" << gbnf;
  if (!program) return false;
  grammar::GrammarStates states(*std::move(program));
  auto state = states.Start();
  for (const char c : text) {
    if (state == grammar::GrammarStates::kOver) return false;
    state = states.Next(state, static_cast<std::uint8_t>(c));
  }
  return state != grammar::GrammarStates::kOver && states.CanEnd(state);
}

std::string WeatherOf(const Written& form, const std::string& city) {
  return Replaced(Replaced(Replaced(form.weather, "DAYS", "3"), "MORE", R"({"a": ["\"}"]})"),
                  "CITY", city);
}

const std::vector<std::pair<std::string, std::string>> kTexts = {
    {"Rome", "Rome"},
    {"", ""},
    {"New \"York\"\n<b>\\", R"(New \"York\"\n<b>\\)"},
    {"\n  x\n\n", R"(\n  x\n\n)"},
    {" </para</parameter </arg_value </｜DSML｜param<",
     " </para</parameter </arg_value </｜DSML｜param<"}};

TEST(TaggedForms, GiveBackTheCallsThatTheyWrite) {
  for (const Written& form : kWritten)
    for (const auto& [city, json] : kTexts) {
      const std::string answer =
          "So.\n" + form.open + WeatherOf(form, city) + form.between + form.now + form.close;
      const TagParts read = {{TagKind::kText, "So."},
                             {TagKind::kName, "weather"},
                             {TagKind::kArguments,
                              "{\"city\": \"" + json + R"(", "days": 3, "more": {"a": ["\"}"]}})"},
                             {TagKind::kName, "now"},
                             {TagKind::kArguments, "{}"}};
      EXPECT_EQ(ReadTags(TagForm(form.form), {}, answer), read) << answer;
      if (form.form != "deepseek-v3.2" || city.find("DSML") == city.npos) {
        EXPECT_EQ(ReadTags(TagForm(form.form), ControlsOf(form), WithControls(answer, form)), read)
            << answer;
      }
    }
}

TEST(TaggedForms, TakeATagWithinATextOfJsonForText) {
  for (const char* const form : {"seed-oss", "qwen-coder"}) {
    const std::string open = form == std::string("seed-oss") ? "<seed:tool_call>" : "<tool_call>";
    EXPECT_EQ(ReadTags(TagForm(form), {},
                       open + "<function=weather><parameter=more>{\"a\": \"</parameter> \\\" "
                              "</parameter>\"}</parameter></function>"),
              (TagParts{{TagKind::kName, "weather"},
                        {TagKind::kArguments,
                         "{\"more\": {\"a\": \"</parameter> \\\" </parameter>\"}}"}}));
  }
}

TEST(TaggedForms, HoldAnswersToTheirGrammars) {
  for (const Written& form : kWritten) {
    const std::string gbnf = TagForm(form.form).grammar({.tools = kTagTools}, {}).value().gbnf;
    const std::string forced =
        TagForm(form.form).grammar({.tools = kTagTools, .required = true}, {}).value().gbnf;
    const std::string one =
        TagForm(form.form).grammar({.tools = kTagTools, .several = false}, {}).value().gbnf;
    const std::string now = form.open + form.now + form.close;
    // A mark beyond ASCII cannot be kept out of a text yet.
    if (form.form != "deepseek-v3.2") {
      for (const auto& [city, json] : kTexts)
        EXPECT_TRUE(TakesTags(gbnf, "So.\n" + form.open + WeatherOf(form, city) + form.between +
                                        form.now + form.close))
            << form.form << city;
      EXPECT_FALSE(
          TakesTags(gbnf, form.open + Replaced(WeatherOf(form, "a"), "3", "few") + form.close));
      EXPECT_FALSE(TakesTags(gbnf, form.open + Replaced(form.now, "now", "other") + form.close));
      EXPECT_FALSE(TakesTags(gbnf, form.open + Replaced(form.now, "now", "weather") + form.close));
    }
    EXPECT_TRUE(TakesTags(forced, now)) << form.form;
    EXPECT_FALSE(TakesTags(forced, "So.")) << form.form;
    EXPECT_TRUE(TakesTags(one, now)) << form.form;
    EXPECT_FALSE(TakesTags(one, form.open + form.now + form.between + form.now + form.close) &&
                 form.form != "deepseek-v3.2")
        << form.form;
  }
}

TEST(TaggedForms, WriteControlTokensIntoTheirGrammars) {
  for (const Written& form : kWritten) {
    const ControlTokens control = ControlsOf(form);
    const auto grammar = TagForm(form.form).grammar({.tools = kTagTools}, control);
    if (!grammar) GTEST_SKIP() << "grammars know no control tokens";
    std::string gbnf = grammar->gbnf;
    for (std::size_t i = 0; i < form.tokens.size(); ++i)
      gbnf = Replaced(gbnf, "<[" + std::to_string(100 + i) + "]>", Quoted(form.tokens[i]));
    for (const auto& [city, json] : kTexts)
      EXPECT_TRUE(TakesTags(
          gbnf, "So.\n" + form.open + WeatherOf(form, city) + form.between + form.now + form.close))
          << form.form << city;
  }
}

TEST(TaggedForms, LeaveWhatIsNoCall) {
  for (const Written& form : kWritten)
    for (const char* const rest : {"", "{\"name\": \"now\"}", "<b>", "\n\n<", "<tool_call>"})
      EXPECT_EQ(ReadTags(TagForm(form.form), {}, "a " + form.open + rest),
                (TagParts{{TagKind::kText, "a " + form.open + rest}}))
          << form.form << rest;
}

TEST(TaggedForms, AreKnownByTheProbe) {
  for (const Written& form : kWritten) {
    const std::string call =
        "<|user|>hi " + form.open + Replaced(form.now, "now", std::string(kProbeTool)) + form.close;
    ASSERT_NE(FormatOf(call), nullptr);
    EXPECT_EQ(FormatOf(call)->name, form.form);
  }
  EXPECT_EQ(FormatOf("<tool_call>{\"name\": \"probe_tool\"}</tool_call>")->name, "hermes");
}

}  // namespace
}  // namespace foretoken::calls
