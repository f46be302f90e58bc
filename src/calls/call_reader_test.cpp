// SPDX-License-Identifier: Apache-2.0
// What readers take out of answers, and that it does not depend on how an answer is divided.
#include "calls/form_testing.h"
#include "calls/marked_text.h"

namespace foretoken::calls {
namespace {

const std::vector<Tool> kSomeTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})"},
    {"now"}};

AnswerParts Read(std::string_view format, const std::string& answer) {
  return FormTesting(format, {}, {}).Read(answer, kSomeTools);
}

TEST(CallReaders, LeaveAnswersWithoutCallsAsTheyAre) {
  for (const CallFormat* const row : CallFormats())
    for (const char* const text :
         {"", "Hello.", " a\n\n b \n", "1 < 2 <tool <tool_cal <TOOLCAL", "<<tool_call", "\n\n\n"})
      EXPECT_EQ(Read(row->name, text), TextOf(text)) << row->name;
}

TEST(CallReaders, TakeCallsOutOfHermesAnswers) {
  const std::string call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome \\\"}\", \"days\": "
      "[1, {}]}}\n</tool_call>";
  const Calls::value_type read = {"weather", R"({"city": "Rome \"}", "days": [1, {}]})"};
  EXPECT_EQ(Read("hermes", call), PartsOf({read}));
  EXPECT_EQ(Read("hermes", "I look.\n\n" + call), PartsOf({read}, "I look."));
  EXPECT_EQ(Read("hermes", call + "\n" + call), PartsOf({read, read}));
  EXPECT_EQ(Read("hermes", call + " Done."), PartsOf({read}, "", " Done."));
}

TEST(CallReaders, TakeMembersInAnyOrder) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"arguments":{"a":1},"name":"now"}</tool_call>)"),
            PartsOf({{"now", R"({"a":1})"}}));
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"id": 7, "name":"now", "x": [{"name": 1}]}</tool_call>)"),
            PartsOf({{"now", "{}"}}));
}

TEST(CallReaders, TakeArgumentsThatAreATextOfJson) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name":"now","arguments":"{\"a\": \"b\"}"}</tool_call>)"),
            PartsOf({{"now", R"({"a": "b"})"}}));
}

TEST(CallReaders, TakeWhatIsNoCallForText) {
  for (const char* const text :
       {"<tool_call>no JSON</tool_call>", "<tool_call>{\"a\": 1}</tool_call>", "<tool_call>\n",
        "<tool_call>{\"name\": ", "<tool_call>{\"name\": 3}</tool_call>", "<tool_call>{]"})
    EXPECT_EQ(Read("hermes", text), TextOf(text)) << text;
}

TEST(CallReaders, KeepCallsThatTheAnswersEndCuts) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name": "now", "arguments": {"a": "b)"),
            PartsOf({{"now", R"({"a": "b)"}}));
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name": "now")"), PartsOf({{"now", ""}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}\n</tool"), PartsOf({{"now", "{}"}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_c"),
            PartsOf({{"now", "{}"}}));
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call>\n<"),
            PartsOf({{"now", "{}"}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>\n{\"na"),
            PartsOf({{"now", "{}"}}));
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call><tool_call><func"),
            PartsOf({{"now", "{}"}}));
}

TEST(CallReaders, KeepTextThatFollowsACall) {
  const AnswerParts said = PartsOf({{"now", "{}"}}, "", " Done. <tool_c");
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call> Done. <tool_c"), said);
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call> Done. <tool_c"),
            said);
  EXPECT_EQ(Read("nemotron", "<TOOLCALL>[{\"name\": \"now\"}, \n"), PartsOf({{"now", "{}"}}));
}

TEST(CallReaders, ReadListsOfCalls) {
  EXPECT_EQ(
      Read("nemotron", R"(Yes. <TOOLCALL>[{"name": "now", "arguments": {}}, {"name": "weather", )"
                       R"("arguments": {"city": "Oslo"}}]</TOOLCALL>)"),
      PartsOf({{"now", "{}"}, {"weather", R"({"city": "Oslo"})"}}, "Yes."));
}

TEST(CallReaders, ReadAnswersThatAreOneCall) {
  EXPECT_EQ(Read("llama", R"({"name": "weather", "parameters": {"city": "Bonn"}})"),
            PartsOf({{"weather", R"({"city": "Bonn"})"}}));
  EXPECT_EQ(Read("llama", R"({"city": "Bonn"})"), TextOf(R"({"city": "Bonn"})"));
  EXPECT_EQ(Read("llama", "So: {\"name\": \"now\"}"), TextOf("So: {\"name\": \"now\"}"));
}

TEST(CallReaders, ReadTagsWithValuesOfTheSchemasTypes) {
  EXPECT_EQ(Read("qwen-coder",
                 "First.\n<tool_call>\n<function=weather>\n<parameter=city>\nNew \"York\"\nUS\n"
                 "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"),
            PartsOf({{"weather", R"({"city": "New \"York\"\nUS", "days": 3})"}}, "First."));
  EXPECT_EQ(Read("qwen-coder", "<tool_call>\n<function=now>\n</function>\n</tool_call>"),
            PartsOf({{"now", "{}"}}));
  EXPECT_EQ(Read("qwen-coder", "<tool_call>\n<parameter=a>\n"),
            TextOf("<tool_call>\n<parameter=a>\n"));
}

TEST(CallReaders, WriteValuesThatAreNoJsonAsTexts) {
  EXPECT_EQ(Read("qwen-coder",
                 "<tool_call><function=weather><parameter=days>\nfew\n</parameter></function>"
                 "</tool_call>"),
            PartsOf({{"weather", R"({"days": "few"})"}}));
}

TEST(MarkFinder, FindsAMarkThatBeginsWithinItsOwnBeginning) {
  MarkFinder finder("aab");
  std::string text;
  EXPECT_FALSE(finder.Read('a', text) || finder.Read('a', text) || finder.Read('a', text));
  EXPECT_EQ(text, "a");
  EXPECT_TRUE(finder.Read('b', text));
}

TEST(CallFormats, AreKnownByWhatTemplatesWrite) {
  const auto name_of = [](std::string_view text) {
    const CallFormat* const row = FormatOf(text);
    return row == nullptr ? std::string_view() : row->name;
  };
  EXPECT_EQ(name_of("<tool_call>\n{\"name\": \"probe_tool\", \"arguments\": {}}\n</tool_call>"),
            "hermes");
  EXPECT_EQ(name_of("<tool_call>\n<function=probe_tool>\n"), "qwen-coder");
  EXPECT_EQ(name_of("<TOOLCALL>[{\"name\": \"probe_tool\"}]</TOOLCALL>"), "nemotron");
  EXPECT_EQ(name_of("{\"name\": \"probe_tool\", \"parameters\": {\"probe_key\": \"probe value\"}}"),
            "llama");
  EXPECT_EQ(name_of("<|im_start|>user\nhi<|im_end|>"), "");
}

}  // namespace
}  // namespace foretoken::calls
