// SPDX-License-Identifier: Apache-2.0
// Calls as a Python list: what the grammars allow, the readers take out as it was meant.
#include "calls/form_testing.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls::python_format {
namespace {

const std::vector<Tool> kPythonTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},)"
     R"( "exact": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},)"
     R"( "where": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}}},)"
     R"( "required": ["city"]})"},
    {"now"}};

const std::vector<FormTesting>& Lfm2() {
  static const auto forms = FormTesting::All("lfm2", {"<|tool_call_start|>", "<|tool_call_end|>"});
  return forms;
}
const std::vector<FormTesting>& LlamaPython() {
  static const auto forms =
      FormTesting::All("llama-python", {"<|python_start|>", "<|python_end|>"});
  return forms;
}
std::string InLfm2(const std::string& list) {
  return "<|tool_call_start|>" + list + "<|tool_call_end|>";
}
std::string In(const FormTesting& form, const std::string& list) {
  return form.row().name == "lfm2" ? InLfm2(list) : list;
}

// The arguments that lfm2 reads from a call of weather with these.
std::string Arguments(const std::string& written) {
  const AnswerParts parts = Lfm2()[0].Read(InLfm2("[weather(" + written + ")]"), kPythonTools);
  EXPECT_EQ(parts.size(), 2u) << written;
  if (parts.size() != 2) return {};
  EXPECT_TRUE(grammar::JsonTree::Parse(parts[1].text)) << parts[1].text;
  return parts[1].text;
}

TEST(PythonFormat, ReadsLiteralsAsJson) {
  EXPECT_EQ(
      Arguments(R"(city="Rome", days=2, exact=True, tags=["a", 'b'], where={"x": None})"),
      R"({"city": "Rome", "days": 2, "exact": true, "tags": ["a", "b"], "where": {"x": null}})");
  EXPECT_EQ(Arguments(R"( a = ( 1 , -2.5 , ) , b = {'k' : {1: [ ]}, "l":{}}, )"),
            R"({"a": [1, -2.5], "b": {"k": {"1": []}, "l": {}}})");
  EXPECT_EQ(Arguments("a=False, b=true, c=false, d=null"),
            R"({"a": false, "b": true, "c": false, "d": null})");
  EXPECT_EQ(
      Arguments("a=1_000, b=.5, c=5., d=+3, e=1e5, f=-1E-2, g=007, h=0x1F"),
      R"({"a": 1000, "b": 0.5, "c": 5.0, "d": 3, "e": 1e5, "f": -1E-2, "g": "007", "h": "0x1F"})");
  EXPECT_EQ(Arguments(""), "{}");
}

TEST(PythonFormat, ReadsEscapesOfPythonAndJson) {
  EXPECT_EQ(Arguments(R"(a="\n\t\"\'\\\/\a", b='\x41\101\u00e9\U0001F600', c="\ud83d\ude00")"),
            "{\"a\": \"\\n\\t\\\"'\\\\/\\u0007\", \"b\": \"AA\xC3\xA9\xF0\x9F\x98\x80\", "
            "\"c\": \"\xF0\x9F\x98\x80\"}");
  EXPECT_EQ(Arguments(R"(a="\d \ud83d. \ud83d\ud83d\ude00 \x4 \u12 \8", b=r"\n\"", c="\)"
                      "\n\""),
            "{\"a\": \"\\\\d \xEF\xBF\xBD. \xEF\xBF\xBD\xF0\x9F\x98\x80 \\\\x4 \\\\u12 \\\\8\", "
            "\"b\": \"\\\\n\\\\\\\"\", \"c\": \"\"}");
  EXPECT_EQ(Arguments("a='''it's\n''x''', b=\"\", c=\"\"\"\"\"\", d=f'y'"),
            R"({"a": "it's\n''x", "b": "", "c": "", "d": "y"})");
}

TEST(PythonFormat, ReadsWhatModelsWriteBesidePython) {
  // Templates put quotes around texts as they are, or none.
  EXPECT_EQ(Arguments("a='it's', b='say \"x\", ok' , c=probe value, d=date(2020, 1)"),
            R"_({"a": "it's", "b": "say \"x\", ok", "c": "probe value", "d": "date(2020, 1)"})_");
  EXPECT_EQ(Arguments("a=http://x.y/?b=1:2, c={d: e}"),
            R"({"a": "http://x.y/?b=1:2", "c": {"d": "e"}})");
  // Arguments without names are those of the schema, in order.
  EXPECT_EQ(Arguments(R"("Rome", 2, exact=True)"), R"({"city": "Rome", "days": 2, "exact": true})");
  EXPECT_EQ(Arguments("[1], {2: 3}, None"), R"({"city": [1], "days": {"2": 3}, "exact": null})");
  // What makes no sense leaves an object of JSON.
  for (const char* const odd :
       {"a=1 2", "a=", "=", ",,", "a={1, 2}", "a={}{}, b=[1][2]", "a=[1, 2}, b=3", "{[}]",
        "a=1=2, b={1:2:3}, c=[:]", "{}, {}, {}, {}, {}, {}, {}"})
    EXPECT_NE(Arguments(odd), "") << odd;
  EXPECT_EQ(Arguments("a={1, 2}, b=[3] [4], c=5"),
            R"({"a": {"1": null, "2": null}, "b": [3], "c": 5})");
}

TEST(PythonFormat, ReadsCallsBetweenMarks) {
  const AnswerParts call = PartsOf({{"weather", R"({"city": "Rome"})"}});
  for (const FormTesting& form : Lfm2()) {
    for (const char* const list :
         {"[weather(city=\"Rome\")]", "weather(city='Rome')",
          " [ weather("
          "\n  city='Rome',\n) ] ",
          "[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}]"})
      EXPECT_EQ(form.Read(InLfm2(list), kPythonTools), call) << list;
    const AnswerParts two = PartsOf({{"weather", R"({"city": "Rome"})"}, {"now", "{}"}}, "I look.");
    EXPECT_EQ(form.Read("I look.\n" + InLfm2("[weather(city='Rome'), now()]") + "\n", kPythonTools),
              two);
    EXPECT_EQ(
        form.Read("I look." + InLfm2("[weather(city='Rome')]") + InLfm2("[now()]"), kPythonTools),
        two);
    EXPECT_EQ(form.Read(InLfm2("[other.f(x=1)]"), kPythonTools),
              PartsOf({{"other.f", R"({"x": 1})"}}));
  }
}

TEST(PythonFormat, ReadsAnAnswerThatIsAList) {
  const AnswerParts two = PartsOf({{"weather", R"({"city": "Rome"})"}, {"now", "{}"}});
  for (const FormTesting& form : LlamaPython()) {
    for (const char* const answer :
         {"[weather(city=\"Rome\"), now()]", " [ weather('Rome'),now()]\n",
          "<|python_start|>[weather(city=\"Rome\"), now()]<|python_end|>",
          "[weather(city=\"Rome\"), now()]<|python_end|>"})
      EXPECT_EQ(form.Read(answer, kPythonTools), two) << answer;
    for (const std::string text :
         {"Hello.", "[1] says so (now)", "[other(x=1)]", "[]", "[weather]", "[weather (x)]", "[",
          "a [now()]", "", " ", "[\"now\"()]", "[now)"})
      EXPECT_EQ(form.Read(text, kPythonTools), TextOf(text));
    EXPECT_EQ(form.Read("[now()] Done.", kPythonTools), PartsOf({{"now", "{}"}}, "", " Done."));
  }
}

TEST(PythonFormat, LosesNothingOfText) {
  for (const FormTesting& form : Lfm2())
    for (const std::string text : {"<|tool_call_sta", "a < b", "[weather(city='Rome')]"})
      EXPECT_EQ(form.Read(text, kPythonTools), TextOf(text));
  EXPECT_EQ(Lfm2()[0].Read("a <|tool_call_start|>[we ather()] b", kPythonTools),
            TextOf("a <|tool_call_start|>[we ather()] b"));
  EXPECT_EQ(Lfm2()[0].Read("<|tool_call_start|>{\"x\": 1} b", kPythonTools),
            TextOf("<|tool_call_start|>{\"x\": 1} b"));
  EXPECT_EQ(Lfm2()[0].Read("<|tool_call_start|>[f(a=[1, 'x", kPythonTools),
            PartsOf({{"f", "{\"a\": [1, \"x"}}));
}

TEST(PythonFormat, EndsACallWhereAControlTokenComes) {
  const Calls call = {{"f", "{\"a\": \"x"}};
  EXPECT_EQ(Lfm2()[1].Read("<|tool_call_start|>[f(a='x<|tool_call_end|>", kPythonTools),
            PartsOf(call));
  EXPECT_EQ(Lfm2()[0].Read("<|tool_call_start|>[f(a='x" + ControlText("<|x|>") + " y", {}),
            PartsOf(call, "", ControlText("<|x|>") + " y"));
}

TEST(PythonFormat, ReadsDeepNestingWithoutRecursion) {
  constexpr std::size_t kDepth = 200'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  const std::string call = InLfm2("[f(a=" + nested + ")]");
  EXPECT_EQ(Lfm2()[0].ReadIn(call.size(), call, kPythonTools),
            PartsOf({{"f", "{\"a\": " + nested + "}"}}));
}

// Calls as the grammar has them, with what they mean.
const std::vector<std::pair<std::string, std::string>> kWrittenArguments = {
    {R"(city="Rome")", R"({"city": "Rome"})"},
    {R"(city="", days=-2, exact=True, tags=["a", "\"),]"], where={"x": None})",
     R"({"city": "", "days": -2, "exact": true, "tags": ["a", "\"),]"], "where": {"x": null}})"},
    {R"(city="it's \u00e9 \\ \n )\"= }", tags=[], where={})",
     "{\"city\": \"it's \xC3\xA9 \\\\ \\n )\\\"= }\", \"tags\": [], \"where\": {}}"},
    {R"(city="a",where={"x":1.5e3})", R"({"city": "a", "where": {"x": 1.5e3}})"}};

TEST(PythonFormat, AllowsWhatItReads) {
  for (const auto* const forms : {&Lfm2(), &LlamaPython()})
    for (const FormTesting& form : *forms) {
      const bool marked = form.row().name == "lfm2";
      const std::string gbnf = form.Grammar({.tools = kPythonTools}).gbnf;
      for (const auto& [written, meant] : kWrittenArguments) {
        const std::string answer = In(form, "[weather(" + written + "), now()]");
        EXPECT_TRUE(form.Takes(gbnf, answer)) << answer;
        EXPECT_EQ(form.Read(answer, kPythonTools), PartsOf({{"weather", meant}, {"now", "{}"}}));
      }
      for (const char* const written :
           {"", "days=2", "days=2, city=\"a\"", "city='a'", "city=\"a\", days=2.5",
            "city=\"a\", exact=true", "city=\"a\", other=1", "city=\"\\/\"", "city=\"\\ud83d\"",
            "city=\"a\nb\"", "city=\"a\", tags=(\"b\")", "city=\"a\",", "city=1"})
        EXPECT_FALSE(form.Takes(gbnf, In(form, "[weather(" + std::string(written) + ")]")))
            << written;
      EXPECT_TRUE(form.Takes(gbnf, In(form, "[now(a=1, b=[{\"c\": \"d\"}, None, True])]")));
      EXPECT_FALSE(form.Takes(gbnf, In(form, "[other()]")) && marked);
      EXPECT_FALSE(form.Takes(gbnf, In(form, "[]")) && marked);
      EXPECT_TRUE(form.Takes(gbnf, "Hello [there] <"));
    }
}

// Each text either is free and stays text, or is no answer.
TEST(PythonFormat, LeavesOtherTextFree) {
  for (const FormTesting& form : LlamaPython()) {
    const std::string gbnf = form.Grammar({.tools = kPythonTools}).gbnf;
    for (const std::string text : {"", " ", "[", "[ ", "[n", "[now", "[nowhere(", "[now ()]",
                                   "[weathe(1)]", "[1]", "a[now()]", "\n[weather]", "[\xC3\xA9",
                                   "[\"now\"()]", "<|python_star", "<x", "[w[now()]"}) {
      EXPECT_TRUE(form.Takes(gbnf, text)) << text;
      EXPECT_EQ(form.Read(text, kPythonTools), TextOf(text));
    }
    for (const std::string text :
         {"[now(", "[ now(x", " \n[now(]", "<|python_start|>[now(", "[now()] Done.", "[weather()]"})
      EXPECT_FALSE(form.Takes(gbnf, text)) << text;
  }
  for (const FormTesting& form : {LlamaPython()[0], LlamaPython()[1]})
    EXPECT_TRUE(form.Takes(form.Grammar({.tools = kPythonTools}).gbnf,
                           "<|python_start|>[now()]<|python_end|>"));
}

TEST(PythonFormat, FollowsWhatIsAskedOfCalls) {
  for (const auto* const forms : {&Lfm2(), &LlamaPython()})
    for (const FormTesting& form : *forms)
      ExpectFollowsWhatIsAsked(form, kPythonTools, In(form, "[now()]"), In(form, "[now(), now()]"));
}

TEST(PythonFormat, WritesOddNamesInQuotes) {
  const std::vector<Tool> tools = {
      {"a b", R"({"properties": {"x=y": {"type": "integer"}, "\n": {}}, "type": "object"})"},
      {"n(\"", R"({"type": "object", "properties": {}})"},
      {"\xC3\xA9-1.x", R"({"properties": {"2d": {"type": "boolean"}}, "type": "object"})"}};
  for (const auto* const forms : {&Lfm2(), &LlamaPython()})
    for (const FormTesting& form : *forms) {
      const std::string list =
          "[\"a b\"(\"x=y\"=1, \"\\n\"=None), \"n(\\\"\"(), \xC3\xA9-1.x(2d=True)]";
      const std::string answer = In(form, list);
      EXPECT_TRUE(form.Takes(form.Grammar({.tools = tools, .required = true}).gbnf, answer));
      EXPECT_EQ(form.Read(answer, tools), PartsOf({{"a b", R"({"x=y": 1, "\n": null})"},
                                                   {"n(\"", "{}"},
                                                   {"\xC3\xA9-1.x", R"({"2d": true})"}}));
    }
}

// A tool with one argument of a schema: which values the grammar takes.
bool TakesValue(const std::string& schema, const std::string& value) {
  const std::vector<Tool> tools = {
      {"f",
       R"({"type": "object", "properties": {"a": )" + schema + R"(}, "required": ["a"],)" +
           R"( "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"},)" +
           R"( "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}}})"}};
  const AnswerGrammar grammar = Lfm2()[0].Grammar({.tools = tools, .required = true});
  EXPECT_TRUE(grammar.notices.empty()) << grammar.notices[0];
  const std::string answer = InLfm2("[f(a=" + value + ")]");
  const bool takes = Lfm2()[0].Takes(grammar.gbnf, answer);
  if (takes) {
    EXPECT_EQ(Lfm2()[0].Read(answer, tools).size(), 2u);
  }
  return takes;
}

TEST(PythonFormat, HoldsValuesToSchemas) {
  const std::vector<std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>>
      cases = {
          {R"({"enum": ["a", "\"b", 1, null, true, [1, {"k": false}]]})",
           {"\"a\"", "\"\\\"b\"", "1", "None", "True", "[1, {\"k\": False}]"},
           {"\"c\"", "2", "False", "true", "[1]"}},
          {R"({"const": 2.5})", {"2.5"}, {"2", "\"2.5\""}},
          {R"({"type": "integer", "minimum": 3, "maximum": 12})", {"3", "12"}, {"2", "13", "3.0"}},
          {R"({"type": "string", "minLength": 2, "maxLength": 3})",
           {"\"ab\"", "\"\\n\\u00e9c\""},
           {"\"a\"", "\"abcd\""}},
          {R"({"type": "string", "pattern": "^a+\"$"})", {"\"aa\\\"\""}, {"\"b\\\"\"", "\"a\""}},
          {R"({"type": "string", "format": "date"})", {"\"2026-11-27\""}, {"\"27.11.\""}},
          {R"({"type": ["string", "null"]})", {"\"\"", "None"}, {"1", "True", "null"}},
          {R"({"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "number"}}]})",
           {"True", "[]", "[1, 2.5]"},
           {"[None]", "\"x\""}},
          {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2})",
           {"[True]", "[True, False]"},
           {"[]", "[True, True, True]"}},
          {R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}],)"
           R"( "items": {"type": "null"}, "minItems": 1, "maxItems": 3})",
           {"[\"a\"]", "[\"a\", 1]", "[\"a\", 1, None]"},
           {"[]", "[1]", "[\"a\", None]", "[\"a\", 1, None, None]"}},
          {R"({"$ref": "#/$defs/node"})",
           {"{\"v\": 1}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": {\"v\": 3}}}"},
           {"{}", "{\"next\": {\"v\": 2}}", "{\"v\": 1, \"next\": None}"}},
          {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
           {"{}", "{\"x\": 1, \"y\": 2}"},
           {"{\"x\": \"1\"}"}},
          {R"({"allOf": [{"type": "object", "properties": {"p": {"type": "integer"}}},)"
           R"( {"properties": {"q": {"type": "string"}}, "required": ["q"]}]})",
           {"{\"p\": 1, \"q\": \"\"}", "{\"q\": \"\"}"},
           {"{\"p\": 1}", "{}"}},
          {"{}", {"1", "{\"a\": [True, \"x\", None]}", "-1.5E2"}, {"true", "x", "'a'"}},
      };
  for (const auto& [schema, good, bad] : cases) {
    for (const std::string& value : good) EXPECT_TRUE(TakesValue(schema, value)) << value;
    for (const std::string& value : bad) EXPECT_FALSE(TakesValue(schema, value)) << value;
  }
}

TEST(PythonFormat, SaysWhichSchemasItDoesNotFollow) {
  for (const char* const schema :
       {R"({"type": "object", "not": {}})", R"({"type": "string"})", "nonsense",
        R"({"type": "object", "properties": {"a": false}, "required": ["a"]})"}) {
    const AnswerGrammar grammar = Lfm2()[0].Grammar({.tools = {{"f", schema}}, .required = true});
    ASSERT_EQ(grammar.notices.size(), 1u) << schema;
    EXPECT_TRUE(grammar.notices[0].starts_with("tools: the arguments of 'f' may be any object"))
        << grammar.notices[0];
    EXPECT_TRUE(Lfm2()[0].Takes(grammar.gbnf, InLfm2("[f(b=[None])]")));
  }
}

TEST(PythonFormat, IsFoundByWhatTemplatesWrite) {
  const std::vector<std::pair<std::string, std::string>> probes = {
      {"<|im_start|>system\nList of tools: <|tool_list_start|>[{}]<|tool_list_end|><|im_end|>\n",
       "lfm2"},
      {"<|im_start|>assistant\n<|tool_call_start|>[probe_tool(probe_key='probe value')]"
       "<|tool_call_end|><|im_end|>\n",
       "lfm2"},
      {"<|tool_call_start|>[{\"name\": \"probe_tool\", \"arguments\": {\"probe_key\": \"probe "
       "value\"}, \"id\": \"call00001\"}]<|tool_call_end|>",
       "lfm2-list"},
      {"<|header_start|>assistant<|header_end|>\n\n[probe_tool(probe_key=\"probe value\")]<|eot|>",
       "llama-python"},
      {"<|start_header_id|>assistant<|end_header_id|>\n\n[probe_tool(probe_key=probe value)]"
       "<|eot_id|>",
       "llama-python"}};
  for (const auto& [text, name] : probes) ExpectWrote(name, text);
}

}  // namespace
}  // namespace foretoken::calls::python_format
