// SPDX-License-Identifier: Apache-2.0
// Calls of Gemma's models: what the grammars allow, the readers take out as it was meant.
#include "calls/form_testing.h"

namespace foretoken::calls::gemma_format {
namespace {

// A form, with ' for the mark around texts in its calls.
struct GemmaForm {
  std::string name, open, close, mark;

  std::vector<FormTesting> All() const { return FormTesting::All(name, {open, close, mark}); }
  std::string Text(const std::string& text) const { return Replaced(text, "'", mark); }
  std::string Call(const std::string& call) const { return open + "call:" + Text(call) + close; }
};

const std::vector<GemmaForm> kGemmaForms = {
    {"function-gemma", "<start_function_call>", "<end_function_call>", "<escape>"},
    {"gemma-4", "<|tool_call>", "<tool_call|>", "<|\"|>"}};

const std::vector<Tool> kGemmaTools = {
    {"weather",
     R"({"type": "object", "properties": {"days": {"type": "integer"}, "city": {"type": "string"},)"
     R"( "exact": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},)"
     R"( "Where": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}}},)"
     R"( "required": ["city"]})"},
    {"now"}};

TEST(GemmaFormat, ReadsValuesAsJson) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "{}"},
      {"city:'Rome',days:2,exact:true", R"({"city": "Rome", "days": 2, "exact": true})"},
      {"list:['a','b',[]],obj:{k:{l:null}}",
       R"({"list": ["a", "b", []], "obj": {"k": {"l": null}}})"},
      {"a:' x, \"y\" }] {:\n\\n < ',b:''", R"({"a": " x, \"y\" }] {:\n\\n < ", "b": ""})"},
      {"'a':1,\"b\":\"c\\n,\"", R"({"a": 1, "b": "c\n,"})"},
      {" a : 1 , b : -2.5 ,", R"({"a": 1, "b": -2.5})"},
      {"a:None,b:False", R"({"a": null, "b": false})"},
      {"a:Rome in May,b:x", R"({"a": "Rome in May", "b": "x"})"}};
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All())
      for (const auto& [written, meant] : cases)
        EXPECT_EQ(testing.Read(form.Call("f{" + written + "}"), {}), PartsOf({{"f", meant}}))
            << written;
}

TEST(GemmaFormat, ReadsCallsBetweenMarks) {
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All()) {
      const Calls two = {{"weather", R"({"city": "Rome"})"}, {"now", "{}"}};
      const std::string calls = form.Call("weather{city:'Rome'}") + "\n" + form.Call("now{}");
      EXPECT_EQ(testing.Read("I look.\n" + calls + "\n", kGemmaTools), PartsOf(two, "I look."));
      EXPECT_EQ(testing.Read("I look." + calls + " Done.", kGemmaTools),
                PartsOf(two, "I look.", " Done."));
    }
}

TEST(GemmaFormat, LosesNothingOfText) {
  for (const GemmaForm& form : kGemmaForms) {
    const FormTesting plain = form.All()[0];
    for (const std::string& text :
         {std::string("a < b"), form.open, form.open.substr(0, 5), "x " + form.open + "cal f{}",
          form.open + "call:a b{}", form.open + "call:f", form.open + "call:{}"})
      EXPECT_EQ(plain.Read(text, kGemmaTools), TextOf(text)) << text;
    EXPECT_EQ(plain.Read(form.Text(form.open + "call:f{a:[1,'x"), {}),
              PartsOf({{"f", "{\"a\": [1, \"x"}}));
  }
}

TEST(GemmaFormat, EndsACallWhereAControlTokenComes) {
  for (const GemmaForm& form : kGemmaForms) {
    const FormTesting control = form.All()[1];
    const Calls call = {{"f", "{\"a\": \"x"}};
    EXPECT_EQ(control.Read(form.Text(form.open + "call:f{a:'x" + form.close), {}), PartsOf(call));
    EXPECT_EQ(control.Read(form.Text(form.open + "call:f{a:'x" + ControlText("<x>") + " y"), {}),
              PartsOf(call, "", ControlText("<x>") + " y"));
  }
}

TEST(GemmaFormat, ReadsDeepNestingWithoutRecursion) {
  constexpr std::size_t kDepth = 200'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  const std::string call = kGemmaForms[1].Call("f{a:" + nested + "}");
  EXPECT_EQ(kGemmaForms[1].All()[0].ReadIn(call.size(), call, kGemmaTools),
            PartsOf({{"f", "{\"a\": " + nested + "}"}}));
}

TEST(GemmaFormat, AllowsWhatItReads) {
  // Members are sorted, as templates sort them.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"city:'Rome'", R"({"city": "Rome"})"},
      {"city:'',days:-2,exact:true,tags:['a','\"},] <e']",
       R"({"city": "", "days": -2, "exact": true, "tags": ["a", "\"},] <e"]})"},
      {"city:'a\n\\ {b: 1}',tags:[],Where:{x:null}",
       R"({"city": "a\n\\ {b: 1}", "tags": [], "Where": {"x": null}})"},
      {"city:'<|<<esc',Where:{x:1.5e3}", R"({"city": "<|<<esc", "Where": {"x": 1.5e3}})"}};
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All()) {
      const std::string gbnf = testing.Grammar({.tools = kGemmaTools}).gbnf;
      for (const auto& [written, meant] : cases) {
        const std::string answer =
            "So. " + form.Call("weather{" + written + "}") + form.Call("now{}");
        EXPECT_TRUE(testing.Takes(gbnf, answer)) << answer;
        EXPECT_EQ(testing.Read(answer, kGemmaTools),
                  PartsOf({{"weather", meant}, {"now", "{}"}}, "So."));
      }
      for (const char* const written :
           {"", "days:2", "days:2,city:'a'", "city:\"a\"", "city:'a',days:2.5", "city:'a',exact:1",
            "city:'a',other:1", "city:a", "city:'a','days':2", "city:'a"})
        EXPECT_FALSE(testing.Takes(gbnf, form.Call("weather{" + std::string(written) + "}")))
            << written;
      EXPECT_TRUE(testing.Takes(gbnf, form.Call("now{a:1,b:[{c:'d'},null,true]}")));
      EXPECT_FALSE(testing.Takes(gbnf, form.Call("other{}")));
      EXPECT_FALSE(testing.Takes(gbnf, form.Call("now{}") + "and"));
      EXPECT_TRUE(testing.Takes(gbnf, "Hello <start_ <|tool"));
    }
}

TEST(GemmaFormat, FollowsWhatIsAskedOfCalls) {
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All())
      ExpectFollowsWhatIsAsked(testing, kGemmaTools, form.Call("now{}"),
                               form.Call("now{}") + form.Call("now{}"));
}

TEST(GemmaFormat, WritesOddNamesInQuotes) {
  const std::vector<Tool> tools = {
      {"a{b", R"({"properties": {"x:y": {"const": 1}}, "type": "object", "required": ["x:y"]})"}};
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All()) {
      const std::string answer = form.Call("\"a{b\"{\"x:y\":1}");
      EXPECT_TRUE(testing.Takes(testing.Grammar({.tools = tools, .required = true}).gbnf, answer));
      EXPECT_EQ(testing.Read(answer, tools), PartsOf({{"a{b", R"({"x:y": 1})"}}));
    }
}

TEST(GemmaFormat, HoldsTextsToSchemas) {
  const std::vector<Tool> tools = {
      {"f",
       R"({"type": "object", "properties": {"a": {"enum": ["x y", "\"", null, 2]},)"
       R"( "b": {"type": "string", "maxLength": 2}, "c": {"type": "string", "pattern": "^k|z$"}}})"}};
  for (const GemmaForm& form : kGemmaForms)
    for (const FormTesting& testing : form.All()) {
      const AnswerGrammar grammar = testing.Grammar({.tools = tools, .required = true});
      for (const char* const good : {"a:'x y'", "a:'\"'", "a:null", "a:2", "b:''", "b:'\xC3\xA9\n'",
                                     "c:'kilo'", "c:'jazz'", "a:2,b:'b',c:'k'"})
        EXPECT_TRUE(testing.Takes(grammar.gbnf, form.Call("f{" + std::string(good) + "}"))) << good;
      for (const char* const bad : {"a:'x'", "a:true", "a:'null'", "b:'abc'"})
        EXPECT_FALSE(testing.Takes(grammar.gbnf, form.Call("f{" + std::string(bad) + "}"))) << bad;
      // A pattern is followed only where it cannot allow the mark.
      const bool followed = grammar.notices.empty();
      EXPECT_NE(testing.Takes(grammar.gbnf, form.Call("f{c:'a'}")), followed);
      if (!followed) {
        EXPECT_EQ(grammar.notices, std::vector<std::string>{
                                       "tools: #/properties/c of 'f' may be any text, because its "
                                       "pattern is not followed"});
      }
    }
}

// A text with the mark in it cannot be written where the mark is text.
TEST(GemmaFormat, LeavesOutTextsThatItCannotWrite) {
  for (const GemmaForm& form : kGemmaForms) {
    std::string mark = form.mark;
    if (const std::size_t quote = mark.find('"'); quote != mark.npos) mark.insert(quote, "\\");
    const std::string schema = R"({"type": "object", "properties": {"a": {"enum": ["x)" + mark +
                               R"(", "y"]}}, "required": ["a"]})";
    const FormTesting plain = form.All()[0];
    const AnswerGrammar grammar = plain.Grammar({.tools = {{"f", schema}}, .required = true});
    EXPECT_TRUE(plain.Takes(grammar.gbnf, form.Call("f{a:'y'}")));
    EXPECT_FALSE(plain.Takes(grammar.gbnf, form.Call("f{a:'x''}")));
  }
}

TEST(GemmaFormat, IsFoundByWhatTemplatesWrite) {
  const std::vector<std::pair<std::string, std::string>> probes = {
      {"<start_of_turn>developer\n<start_function_declaration>declaration:probe_tool{description:"
       "<escape>a tool<escape>}<end_function_declaration><end_of_turn>\n",
       "function-gemma"},
      {"<start_function_call>call:probe_tool{probe_key:<escape>probe value<escape>}"
       "<end_function_call><start_function_response>",
       "function-gemma"},
      {"<|turn>model\n<|tool_call>call:probe_tool{probe_key:<|\"|>probe value<|\"|>}<tool_call|>"
       "<turn|>\n",
       "gemma-4"},
      {"<|turn>system\n<|tool>declaration:probe_tool{description:<|\"|>a "
       "tool<|\"|>}<tool|><turn|>\n",
       "gemma-4"}};
  for (const auto& [text, name] : probes) ExpectWrote(name, text);
}

}  // namespace
}  // namespace foretoken::calls::gemma_format
