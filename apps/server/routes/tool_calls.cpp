// SPDX-License-Identifier: Apache-2.0
#include "server/routes/tool_calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/api/call_ids.h"
#include "server/api/tools_in_text.h"
#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

std::string Written(const Engine& engine, const std::vector<ChatMessage>& messages,
                    const ChatOptions& format) {
  auto text = engine.WriteChat(messages, format);
  return text ? *std::move(text) : std::string();
}

bool HasCalls(const ChatMessage& message) {
  return message.role == "tool" || message.members_json.find("\"tool_calls\"") != std::string::npos;
}

// How the model calls, by what its template writes.
void FindFormat(const Engine& engine, const ChatOptions& chat_format, ModelCalls& model) {
  const ChatMessage question{.role = "user", .content = "Hello"};
  const ChatMessage call{
      .role = "assistant", .content = "", .members_json = calls::ProbeCallsJson()};
  const ChatMessage result{
      .role = "tool",
      .content = "a result",
      .members_json = R"({"tool_call_id": "call00001", "name": "probe_tool"})"};
  ChatOptions with = chat_format;
  with.tools_json = calls::ProbeToolsJson();
  const std::string told = Written(engine, {question}, with);
  model.told = told.find(calls::kProbeTool) != std::string::npos;
  model.format = model.told
                     ? calls::FormatOf(told + Written(engine, {question, call, result}, with))
                     : calls::CallFormats().front();
}

}  // namespace

ModelCalls FindModelCalls(const Engine& engine, const ChatOptions& chat_format) {
  ModelCalls model;
  FindFormat(engine, chat_format, model);
  for (const std::int32_t token : engine.ControlTokens())
    model.control.Add(engine.Detokenize(std::array{token}, true), token);
  model.chat_template = engine.ChatTemplateText(chat_format).value_or(std::string());
  model.thoughts = &calls::ThoughtMarksOf(model.chat_template);
  model.thinks = calls::Thinks(model.chat_template);
  return model;
}

bool PutToolsInText(const ModelCalls& model, std::vector<ChatMessage>& messages,
                    std::string& tools_json) {
  if (model.told && model.format != nullptr) WriteCallIds(model.format->ids, messages);
  // A conversation may have calls of earlier turns without tools for the next one.
  if (model.told ||
      (tools_json.empty() && std::none_of(messages.begin(), messages.end(), HasCalls)))
    return false;
  const std::string tools = std::exchange(tools_json, {});
  messages = WithToolsInText(std::move(messages), tools);
  return !tools.empty();
}

Parsed<GenerationCall> WithToolCalls(GenerationCall call, const ModelCalls& model) {
  ToolFields& tools = call.tools;
  if (PutToolsInText(model, call.messages, tools.json))
    call.notices.emplace_back(
        "tools: the chat template knows none, so a system message tells the model of them");
  std::string& grammar = call.request.sampling.grammar;
  if (tools.use.tools.empty() && !(model.whole() && !grammar.empty())) return call;
  if (model.format == nullptr) {
    if (tools.use.required)
      return Refuse(
          BadField("tool_choice",
                   "this model writes calls in a form that is not known here, so none can "
                   "be forced; use auto",
                   "unsupported_parameter"));
    call.notices.emplace_back(
        "tools: this model writes calls in a form that is not known here; they are returned as "
        "text");
    tools.use.tools.clear();
    return call;
  }
  tools.use.text_grammar = grammar;
  auto answers = model.format->grammar(tools.use, model.control);
  if (answers) {
    grammar = std::move(answers->gbnf);
    for (std::string& notice : answers->notices) call.notices.push_back(std::move(notice));
    return call;
  }
  if (tools.use.required || !grammar.empty() || answers.error().code != ErrorCode::kTooLarge)
    return Refuse(
        BadField("tools", answers.error().why(),
                 answers.error().code == ErrorCode::kTooLarge ? "grammar_too_large" : ""));
  call.notices.emplace_back(
      "tools: they make too large a grammar, so calls are not held to their schemas");
  return call;
}

}  // namespace foretoken::server
