// SPDX-License-Identifier: Apache-2.0
// Readers of calls get any answer, in pieces of any size: the parts are those of the whole answer. Grammars get
// any name and schema of a tool.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"

namespace {

using foretoken::calls::Add;
using foretoken::calls::AnswerPart;
using foretoken::calls::CallFormat;
using foretoken::calls::CallFormats;
using foretoken::calls::Tool;

std::vector<AnswerPart> Read(const CallFormat& format, const std::vector<Tool>& tools,
                             std::string_view answer, std::size_t piece) {
  const auto reader = format.reader(tools, {});
  std::vector<AnswerPart> all, parts;
  const auto take = [&] {
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    parts.clear();
  };
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    reader->Read(answer.substr(i, piece), parts);
    take();
  }
  reader->End(parts);
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
    if (readable) (void)format.grammar({.tools = tools, .required = data[1] % 8 == 0});
    return 0;
  }
  if (Read(format, tools, text, text.size() + 1) != Read(format, tools, text, 1 + data[1] % 16u))
    std::abort();
  return 0;
}
