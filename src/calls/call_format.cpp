// SPDX-License-Identifier: Apache-2.0
#include "calls/call_format.h"

#include <fmt/format.h>

#include <array>

namespace foretoken::calls {

extern const CallFormat kHermesFormat, kNemotronFormat, kLlamaFormat, kMistralListFormat,
    kGraniteFormat, kPhiFormat, kCommandFormat;
extern const CallFormat kTaggedFormat, kSeedFormat, kMiniMaxFormat, kGlmFormat, kDsmlFormat;
extern const CallFormat kDeepSeekFormat, kDeepSeekBareFormat, kKimiFormat, kMistralFormat;
extern const CallFormat kHarmonyFormat, kLfmListFormat;
extern const CallFormat kLfm2Format, kLlamaPythonFormat, kFunctionGemmaFormat, kGemma4Format;

namespace {

constexpr std::array kRows = {
    &kHermesFormat,      &kTaggedFormat,       &kNemotronFormat, &kLlamaFormat,
    &kDeepSeekFormat,    &kDeepSeekBareFormat, &kKimiFormat,     &kMistralFormat,
    &kMistralListFormat, &kGraniteFormat,      &kPhiFormat,      &kCommandFormat,
    &kHarmonyFormat,     &kSeedFormat,         &kMiniMaxFormat,  &kGlmFormat,
    &kDsmlFormat,        &kLfm2Format,         &kLfmListFormat,  &kLlamaPythonFormat,
    &kGemma4Format,      &kFunctionGemmaFormat};

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
  for (const CallFormat* const row :
       {&kLfmListFormat,     &kLfm2Format,    &kGemma4Format,      &kFunctionGemmaFormat,
        &kLlamaPythonFormat, &kHarmonyFormat, &kDeepSeekFormat,    &kDeepSeekBareFormat,
        &kKimiFormat,        &kMistralFormat, &kMistralListFormat, &kGraniteFormat,
        &kPhiFormat,         &kCommandFormat, &kSeedFormat,        &kMiniMaxFormat,
        &kDsmlFormat,        &kTaggedFormat,  &kGlmFormat,         &kNemotronFormat,
        &kHermesFormat,      &kLlamaFormat})
    if (row->wrote(conversation)) return row;
  return nullptr;
}

}  // namespace foretoken::calls
