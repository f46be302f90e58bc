// SPDX-License-Identifier: Apache-2.0
#include "calls/call_format.h"

#include <fmt/format.h>

#include <array>

namespace foretoken::calls {

extern const CallFormat kHermesFormat, kLlamaFormat, kNemotronFormat, kTaggedFormat;
extern const CallFormat kDsmlFormat, kGlmFormat, kMiniMaxFormat, kSeedFormat;

namespace {

constexpr std::array kRows = {&kHermesFormat, &kTaggedFormat,  &kNemotronFormat, &kLlamaFormat,
                              &kSeedFormat,   &kMiniMaxFormat, &kGlmFormat,      &kDsmlFormat};

}  // namespace

std::span<const CallFormat* const> CallFormats() {
  return kRows;
}

std::string ProbeToolsJson() {
  return fmt::format(
      R"([{{"type": "function", "function": {{"name": "{}", "description": "a tool", "parameters": )"
      R"({{"type": "object", "properties": {{"{}": {{"type": "string", "description": "a text"}}}}, )"
      R"("required": ["{}"]}}}}}}])",
      kProbeTool, kProbeKey, kProbeKey);
}

std::string ProbeCallsJson() {
  return fmt::format(
      R"({{"content": null, "tool_calls": [{{"id": "call00001", "type": "function", "function": )"
      R"({{"name": "{}", "arguments": "{{\"{}\": \"{}\"}}"}}}}]}})",
      kProbeTool, kProbeKey, kProbeValue);
}

const CallFormat* FormatOf(std::string_view conversation) {
  // Tags of functions stand inside of the marks of other forms.
  for (const CallFormat* const row : {&kSeedFormat, &kMiniMaxFormat, &kDsmlFormat, &kTaggedFormat,
                                      &kGlmFormat, &kNemotronFormat, &kHermesFormat, &kLlamaFormat})
    if (row->wrote(conversation)) return row;
  return nullptr;
}

}  // namespace foretoken::calls
