// SPDX-License-Identifier: Apache-2.0
// server/api/ollama_schema.h: reads the bodies of Ollama's requests. They become bodies of OpenAI's
// chats and completions, whose reader checks what they have in common.
//
// Pure functions of their arguments; any bytes may come in. Errors may have the names of OpenAI's
// fields, which InOwnNames turns into Ollama's.
#pragma once

#include <optional>
#include <string_view>

#include "server/api/openai_schema.h"

namespace foretoken::server {

// Reads "model", which may be left out, and may end with ":latest".
void ReadOllamaModel(JsonFields& fields, const ModelLimits& limits);

struct OllamaCall {
  bool load = false;  // nothing is asked: a client wants the model to be loaded, which it is
  bool raw = false;   // the prompt may write control tokens by their names
  GenerationCall generation = {};  // without `load`
};
[[nodiscard]] Parsed<OllamaCall> ParseOllamaChat(std::string_view body, const ModelLimits& limits);
// chats: there is a chat template, which writes prompts that are not raw.
[[nodiscard]] Parsed<OllamaCall> ParseOllamaGenerate(std::string_view body,
                                                     const ModelLimits& limits, bool chats);
// The body of /api/show, which names a model. An error, or nothing.
[[nodiscard]] std::optional<ApiError> CheckOllamaShow(std::string_view body,
                                                      const ModelLimits& limits);

}  // namespace foretoken::server
