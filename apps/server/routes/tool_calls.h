// SPDX-License-Identifier: Apache-2.0
// server/routes/tool_calls.h: how the served model is told of tools, and how it calls them.
#pragma once

#include <string>
#include <vector>

#include "calls/call_format.h"
#include "calls/thought.h"
#include "foretoken/engine.h"
#include "server/api/openai_schema.h"

namespace foretoken::server {

// What the server's chat template does with tools.
struct ModelCalls {
  bool told = false;  // it writes tools and calls itself; otherwise they are put into texts
  // The form in which the model calls. Null: the template has one that is not known here, and calls
  // stay text.
  const calls::CallFormat* format = nullptr;
  // Every answer has the format, not only those with calls.
  bool whole() const { return format != nullptr && format->whole; }
  calls::ControlTokens control = {};
  const ThoughtMarks* thoughts = nullptr;  // not null
  bool thinks = false;                     // the template speaks of these marks
  std::string chat_template = {};
};
// Found by what the template writes of a conversation with a tool.
ModelCalls FindModelCalls(const Engine& engine, const ChatOptions& chat_format);

// Writes the messages as the template takes them: ids of calls, and what it does not know, which are
// tools, then none of tools_json any more, and calls of earlier turns. Returns whether there were
// tools to put there.
bool PutToolsInText(const ModelCalls& model, std::vector<ChatMessage>& messages,
                    std::string& tools_json);

// Prepares a chat: its messages and tools as the template takes them, and the grammar of its answers.
// Errors: a forced call that cannot be held to its tool's schema.
[[nodiscard]] Parsed<GenerationCall> WithToolCalls(GenerationCall call, const ModelCalls& model);

}  // namespace foretoken::server
