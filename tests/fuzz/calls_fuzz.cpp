// SPDX-License-Identifier: Apache-2.0
// Readers of calls get any answer, in pieces of any size: the parts are those of the whole answer, and have no
// bytes that mark control tokens. Grammars get any name and schema of a tool.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_text.h"
#include "calls/call_format.h"
#include "calls/thought.h"

namespace {

using foretoken::calls::Add;
using foretoken::calls::AnswerPart;
using foretoken::calls::CallFormat;
using foretoken::calls::CallFormats;
using foretoken::calls::ControlTokens;
using foretoken::calls::Tool;

// The marks of forms as control tokens, or as text.
const ControlTokens& Control(bool any) {
  static const ControlTokens none;
  static const ControlTokens all = [] {
    ControlTokens control;
    std::int32_t token = 0;
    std::istringstream marks(
        "<tool_call> </tool_call> [TOOL_CALLS] [ARGS] [CALL_ID] <|tool_call_start|> "
        "<|tool_call_end|> <|tool_call> <tool_call|> <|\"|> <escape> <|channel|> <|message|> "
        "<|start|> <|end|> <｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> <｜tool▁sep｜> "
        "<｜tool▁call▁end｜> ｜DSML｜ <think> </think> <arg_key> <arg_value> </arg_value> "
        "<|tool_call_begin|> <|START_ACTION|>");
    for (std::string mark; marks >> mark;) control.Add(mark, token++);
    return control;
  }();
  return any ? all : none;
}

// How the answer is read: the form, and whether marks are control tokens.
struct Reading {
  const CallFormat& format;
  const std::vector<Tool>& tools;
  bool control;
};

std::vector<AnswerPart> Read(const Reading& reading, std::string_view answer, std::size_t piece) {
  const ControlTokens& control = Control(reading.control);
  foretoken::calls::AnswerReader reader(
      {.thoughts = reading.format.whole ? nullptr : &foretoken::kThoughtMarks.front()}, control,
      reading.format.reader(reading.tools, control));
  std::vector<AnswerPart> all, parts;
  const auto take = [&] {
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    parts.clear();
  };
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    reader.Read(answer.substr(i, piece), parts);
    take();
  }
  reader.End(parts);
  take();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto formats = CallFormats();
  const CallFormat& format = *formats[data[0] % formats.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  const std::size_t name = text.size() < data[2] ? text.size() : data[2];
  const std::vector<Tool> tools = {
      {"f", R"({"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}}})"},
      {std::string(text.substr(0, name)), std::string(text.substr(name))}};
  if (data[1] % 4 == 0) {
    const bool readable = !tools[1].name.empty() && name < 64;
    if (readable)
      (void)format.grammar({.tools = tools, .required = data[1] % 8 == 0},
                           Control(data[1] & 0x20u));
    return 0;
  }
  const Reading reading = {format, tools, (data[1] & 0x20u) != 0};
  const std::vector<AnswerPart> parts = Read(reading, text, text.size() + 1);
  if (parts != Read(reading, text, 1 + data[1] % 16u)) std::abort();
  for (const AnswerPart& part : parts)
    if (part.text.find_first_of("\xFF\xFE") != part.text.npos) std::abort();
  return 0;
}
