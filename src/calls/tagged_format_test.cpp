// SPDX-License-Identifier: Apache-2.0
// Forms with a tag for each argument: what their readers and grammars make of one call.
#include "calls/form_testing.h"

namespace foretoken::calls {
namespace {

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

  std::string Weather(const std::string& city) const {
    return Replaced(Replaced(Replaced(weather, "DAYS", "3"), "MORE", R"({"a": ["\"}"]})"), "CITY",
                    city);
  }
  std::string Two(const std::string& city) const {
    return "So.\n" + open + Weather(city) + between + now + close;
  }
  // Without control tokens, and with all.
  FormTesting Plain() const { return FormTesting::All(form, tokens)[0]; }
  FormTesting Control() const { return FormTesting::All(form, tokens)[1]; }
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

// Texts, and what stands for them between the quotes of a JSON string.
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
      const AnswerParts read =
          PartsOf({{"weather", "{\"city\": \"" + json + R"(", "days": 3, "more": {"a": ["\"}"]}})"},
                   {"now", "{}"}},
                  "So.");
      const std::string answer = form.Control().ForReader(form.Two("CITY"));
      EXPECT_EQ(form.Plain().Read(form.Two(city), kTagTools), read) << city;
      EXPECT_EQ(form.Control().ReadRaw(Replaced(answer, "CITY", city), kTagTools), read) << city;
    }
}

TEST(TaggedForms, TakeATagWithinATextOfJsonForText) {
  for (const std::string form : {"seed-oss", "qwen-coder"}) {
    const std::string open = form == "seed-oss" ? "<seed:tool_call>" : "<tool_call>";
    EXPECT_EQ(FormTesting(form, {}, {})
                  .Read(open + "<function=weather><parameter=more>{\"a\": \"</parameter> \\\" "
                               "</parameter>\"}</parameter></function>",
                        kTagTools),
              PartsOf({{"weather", "{\"more\": {\"a\": \"</parameter> \\\" </parameter>\"}}"}}));
  }
}

TEST(TaggedForms, HoldAnswersToTheirGrammars) {
  for (const Written& form : kWritten) {
    SCOPED_TRACE(form.form);
    const std::string gbnf = form.Plain().Grammar({.tools = kTagTools}).gbnf,
                      forced = form.Plain().Grammar({.tools = kTagTools, .required = true}).gbnf,
                      one = form.Plain().Grammar({.tools = kTagTools, .several = false}).gbnf,
                      now = form.open + form.now + form.close,
                      twice = form.open + form.now + form.between + form.now + form.close;
    // A mark beyond ASCII cannot be kept out of a text yet.
    if (form.form != "deepseek-v3.2") {
      for (const auto& [city, json] : kTexts) EXPECT_TRUE(Takes(gbnf, form.Two(city))) << city;
      const std::string weather = form.open + form.Weather("a") + form.close;
      for (const std::string& text : {Replaced(weather, "3", "few"), Replaced(now, "now", "other"),
                                      Replaced(now, "now", "weather")})
        EXPECT_FALSE(Takes(gbnf, text)) << text;
      EXPECT_FALSE(Takes(one, twice));
    }
    EXPECT_TRUE(Takes(forced, now));
    EXPECT_FALSE(Takes(forced, "So."));
    EXPECT_TRUE(Takes(one, now));
  }
}

TEST(TaggedForms, WriteControlTokensIntoTheirGrammars) {
  for (const Written& form : kWritten) {
    const std::string gbnf = form.Control().Grammar({.tools = kTagTools}).gbnf,
                      answer = form.Control().ForGrammar(form.Two("CITY"));
    for (const auto& [city, json] : kTexts)
      EXPECT_TRUE(Takes(gbnf, Replaced(answer, "CITY", city))) << form.form << city;
  }
}

TEST(TaggedForms, LeaveWhatIsNoCall) {
  for (const Written& form : kWritten)
    for (const char* const rest : {"", "{\"name\": \"now\"}", "<b>", "\n\n<", "<tool_call>"})
      EXPECT_EQ(form.Plain().Read("a " + form.open + rest, kTagTools),
                TextOf("a " + form.open + rest));
}

TEST(TaggedForms, AreKnownByTheProbe) {
  for (const Written& form : kWritten) {
    const std::string call = "<|user|>hi " + form.open + Replaced(form.now, "now", kProbeTool);
    ASSERT_NE(FormatOf(call + form.close), nullptr);
    EXPECT_EQ(FormatOf(call + form.close)->name, form.form);
  }
  EXPECT_EQ(FormatOf("<tool_call>{\"name\": \"probe_tool\"}</tool_call>")->name, "hermes");
}

}  // namespace
}  // namespace foretoken::calls
