// SPDX-License-Identifier: Apache-2.0
// What readers take out of answers, and that it does not depend on how an answer is divided.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calls/call_format.h"
#include "calls/marked_text.h"

namespace foretoken::calls {
namespace {

using Kind = AnswerPart::Kind;
using Parts = std::vector<AnswerPart>;

const std::vector<Tool> kSomeTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})"},
    {"now"}};

const CallFormat& Named(std::string_view name) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == name) return *row;
  throw std::invalid_argument(std::string(name));
}

// The answer read in pieces of so many bytes, with adjacent parts of one kind joined.
Parts ReadIn(std::string_view format, std::string_view answer, std::size_t piece) {
  const auto reader = Named(format).reader(kSomeTools, {});
  Parts all;
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    Parts parts;
    reader->Read(answer.substr(i, piece), parts);
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
  }
  Parts parts;
  reader->End(parts);
  for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
  return all;
}

Parts Read(std::string_view format, std::string_view answer) {
  const Parts whole = ReadIn(format, answer, answer.size() + 1);
  for (std::size_t piece = 1; piece < answer.size(); ++piece)
    EXPECT_EQ(ReadIn(format, answer, piece), whole) << piece;
  return whole;
}

Parts Call(const std::string& name, const std::string& arguments) {
  return {{Kind::kName, name}, {Kind::kArguments, arguments}};
}

Parts Joined(const std::vector<Parts>& lists) {
  Parts all;
  for (const Parts& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Parts Text(const std::string& text) {
  return {{Kind::kText, text}};
}

TEST(CallReaders, LeaveAnswersWithoutCallsAsTheyAre) {
  for (const CallFormat* const row : CallFormats())
    for (const char* const text :
         {"", "Hello.", " a\n\n b \n", "1 < 2 <tool <tool_cal <TOOLCAL", "<<tool_call", "\n\n\n"})
      EXPECT_EQ(Read(row->name, text), *text == '\0' ? Parts() : Text(text)) << row->name;
}

TEST(CallReaders, TakeCallsOutOfHermesAnswers) {
  const std::string call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome \\\"}\", \"days\": "
      "[1, {}]}}\n</tool_call>";
  const Parts read = Call("weather", R"({"city": "Rome \"}", "days": [1, {}]})");
  EXPECT_EQ(Read("hermes", call), read);
  EXPECT_EQ(Read("hermes", "I look.\n\n" + call), Joined({Text("I look."), read}));
  EXPECT_EQ(Read("hermes", call + "\n" + call), Joined({read, read}));
  EXPECT_EQ(Read("hermes", call + " Done."), Joined({read, Text(" Done.")}));
}

TEST(CallReaders, TakeMembersInAnyOrder) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"arguments":{"a":1},"name":"now"}</tool_call>)"),
            Call("now", R"({"a":1})"));
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"id": 7, "name":"now", "x": [{"name": 1}]}</tool_call>)"),
            Call("now", "{}"));
}

TEST(CallReaders, TakeArgumentsThatAreATextOfJson) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name":"now","arguments":"{\"a\": \"b\"}"}</tool_call>)"),
            Call("now", R"({"a": "b"})"));
}

TEST(CallReaders, TakeWhatIsNoCallForText) {
  for (const char* const text :
       {"<tool_call>no JSON</tool_call>", "<tool_call>{\"a\": 1}</tool_call>", "<tool_call>\n",
        "<tool_call>{\"name\": ", "<tool_call>{\"name\": 3}</tool_call>", "<tool_call>{]"})
    EXPECT_EQ(Read("hermes", text), Text(text)) << text;
}

TEST(CallReaders, KeepCallsThatTheAnswersEndCuts) {
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name": "now", "arguments": {"a": "b)"),
            Call("now", R"({"a": "b)"));
  EXPECT_EQ(Read("hermes", R"(<tool_call>{"name": "now")"), (Parts{{Kind::kName, "now"}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}\n</tool"), Call("now", "{}"));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_c"),
            Call("now", "{}"));
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call>\n<"),
            Call("now", "{}"));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>\n{\"na"),
            Call("now", "{}"));
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call><tool_call><func"),
            Call("now", "{}"));
}

TEST(CallReaders, KeepTextThatFollowsACall) {
  const Parts said = Joined({Call("now", "{}"), Text(" Done. <tool_c")});
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call> Done. <tool_c"), said);
  EXPECT_EQ(Read("qwen-coder", "<tool_call><function=now></function></tool_call> Done. <tool_c"),
            said);
  EXPECT_EQ(Read("nemotron", "<TOOLCALL>[{\"name\": \"now\"}, \n"), Call("now", "{}"));
}

TEST(CallReaders, ReadListsOfCalls) {
  EXPECT_EQ(
      Read("nemotron", R"(Yes. <TOOLCALL>[{"name": "now", "arguments": {}}, {"name": "weather", )"
                       R"("arguments": {"city": "Oslo"}}]</TOOLCALL>)"),
      Joined({Text("Yes."), Call("now", "{}"), Call("weather", R"({"city": "Oslo"})")}));
}

TEST(CallReaders, ReadAnswersThatAreOneCall) {
  EXPECT_EQ(Read("llama", R"({"name": "weather", "parameters": {"city": "Bonn"}})"),
            Call("weather", R"({"city": "Bonn"})"));
  EXPECT_EQ(Read("llama", R"({"city": "Bonn"})"), Text(R"({"city": "Bonn"})"));
  EXPECT_EQ(Read("llama", "So: {\"name\": \"now\"}"), Text("So: {\"name\": \"now\"}"));
}

TEST(CallReaders, ReadTagsWithValuesOfTheSchemasTypes) {
  EXPECT_EQ(
      Read("qwen-coder",
           "First.\n<tool_call>\n<function=weather>\n<parameter=city>\nNew \"York\"\nUS\n"
           "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"),
      Joined({Text("First."), Call("weather", R"({"city": "New \"York\"\nUS", "days": 3})")}));
  EXPECT_EQ(Read("qwen-coder", "<tool_call>\n<function=now>\n</function>\n</tool_call>"),
            Call("now", "{}"));
  EXPECT_EQ(Read("qwen-coder", "<tool_call>\n<parameter=a>\n"),
            Text("<tool_call>\n<parameter=a>\n"));
}

TEST(CallReaders, WriteValuesThatAreNoJsonAsTexts) {
  EXPECT_EQ(Read("qwen-coder",
                 "<tool_call><function=weather><parameter=days>\nfew\n</parameter></function>"
                 "</tool_call>"),
            Call("weather", R"({"days": "few"})"));
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
