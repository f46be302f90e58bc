// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama_schema.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/api/body_limits.h"
#include "server/api/json_fields.h"
#include "server/api/ollama_messages.h"

namespace foretoken::server {
namespace {

constexpr const char* kOllamaTextOnly = "models here read and write text; leave it out";
// Members of "options" with the names of OpenAI's fields.
constexpr std::string_view kSameOptions[] = {"temperature",
                                             "top_k",
                                             "top_p",
                                             "min_p",
                                             "typical_p",
                                             "seed",
                                             "stop",
                                             "repeat_penalty",
                                             "repeat_last_n",
                                             "tfs_z",
                                             "presence_penalty",
                                             "frequency_penalty",
                                             "mirostat",
                                             "mirostat_tau",
                                             "mirostat_eta"};
// How Ollama is to run a model, which the server's start has decided.
constexpr std::string_view kIdleOptions[] = {
    "num_ctx",    "num_batch", "num_gpu",          "main_gpu",      "num_thread", "num_keep",
    "num_gqa",    "use_mmap",  "use_mlock",        "low_vram",      "f16_kv",     "vocab_only",
    "logits_all", "numa",      "penalize_newline", "embedding_only"};

// Writes the body of a call of OpenAI's while it reads one of Ollama's.
class OllamaReader {
 public:
  OllamaReader(const Json& body, const ModelLimits& limits)
      : limits_(limits), fields_(body, "", error_) {}

  // Nothing: there are no messages.
  Parsed<std::optional<Json>> Chat() {
    ReadShared();
    for (const char* const name : {"tools", "tool_choice", "parallel_tool_calls"})
      if (const Json* const value = fields_.Find(name)) out_[name] = *value;
    const Json* const messages = fields_.Find("messages");
    const bool some = messages != nullptr && !(messages->is_array() && messages->empty());
    if (some && !messages->is_array()) fields_.Bad("messages", "it is not a list; give one");
    fields_.Finish();
    if (some && !error_) out_["messages"] = MessagesOfOllama(*messages, error_);
    return Body(some);
  }

  // Nothing: there is no prompt. raw: in and out; true: a completion, otherwise a chat.
  Parsed<std::optional<Json>> Generate(bool chats, bool& raw) {
    ReadShared();
    std::string prompt, system;
    fields_.Text("prompt", prompt);
    fields_.Text("system", system);
    fields_.Switch("raw", raw);
    const auto refuse = [&](const char* name, const char* why) {
      const Json* const value = fields_.Find(name);
      if (value != nullptr && *value != "" && !(value->is_array() && value->empty()))
        fields_.Bad(name, why, "unsupported_parameter");
    };
    refuse("suffix", "texts are only continued; leave it out");
    refuse("template", "the template is the model's or that of --chat-template; leave it out");
    refuse("context", "replies give no tokens to go on from; send the conversation to /api/chat");
    refuse("images", kOllamaTextOnly);
    if (!system.empty() && (raw || !chats))
      fields_.Bad("system", raw ? "raw is true, so the prompt stands alone; leave one of them out"
                                : "the model has no chat template; write it into the prompt");
    fields_.Finish();
    raw |= !chats;
    if (raw) {
      out_["prompt"] = prompt;
    } else {
      Json& messages = out_["messages"] = Json::array();
      if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
      messages.push_back({{"role", "user"}, {"content", prompt}});
    }
    return Body(!prompt.empty());
  }

  const std::string& template_kwargs() const { return kwargs_; }
  std::string_view effort_variable() const { return variable_; }

 private:
  Parsed<std::optional<Json>> Body(bool asks) {
    if (error_) return Refuse(*std::move(error_));
    if (!asks) return std::nullopt;
    return std::move(out_);
  }

  void ReadShared() {
    ReadOllamaModel(fields_, limits_);
    fields_.Switch("stream", stream_);
    out_["stream"] = stream_;
    ReadFormat();
    ReadOptions();
    ReadThink();
    bool logprobs = false, any = false;
    std::optional<int> top;
    fields_.Switch("logprobs", logprobs);
    fields_.Integer("top_logprobs", 0, kMostAlternatives, top);
    if (logprobs || top.value_or(0) > 0)
      fields_.Bad(logprobs ? "logprobs" : "top_logprobs",
                  "replies of this API do not have them; use /v1/chat/completions",
                  "unsupported_parameter");
    fields_.Idle("keep_alive");  // a duration, as a text or a number; the model stays
    for (const char* const name : {"truncate", "shift"}) {
      fields_.Switch(name, any);
      fields_.Idle(name);
    }
  }

  void ReadFormat() {
    const Json* const format = fields_.Find("format");
    if (format == nullptr || *format == "") return;
    if (*format == "json") return void(out_["response_format"] = {{"type", "json_object"}});
    if (!format->is_object())
      return fields_.Bad("format", JsonFields::Shown(*format) +
                                       " is no form; use \"json\", or give a JSON Schema");
    out_["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "answer"}, {"schema", *format}}}};
  }

  void ReadOptions() {
    const Json* const options = fields_.Object("options");
    std::optional<int> most;
    if (options != nullptr) {
      JsonFields fields(*options, "options.", error_);
      for (const std::string_view name : kSameOptions)
        if (const Json* const value = fields.Find(name)) out_[name] = *value;
      for (const std::string_view name : kIdleOptions)
        fields.NoteIdle(name, fields.FindForeign(name, "the start of the server has decided it"));
      fields.Integer("num_predict", -2, kMaxTextTokens, most);
      fields.Finish();
    }
    out_["max_tokens"] = most.value_or(0) > 0 ? *most : -1;
  }

  // Templates that let a model think know these variables.
  void ReadThink() {
    const Json* const think = fields_.Find("think");
    if (think == nullptr || *think == "") return;
    if (!think->is_boolean() && !think->is_string())
      return fields_.Bad("think", JsonFields::Shown(*think) +
                                      " is neither true, false nor a level; give one of them");
    variable_ = think->is_boolean() ? "enable_thinking" : "reasoning_effort";
    kwargs_ = Json{{variable_, *think}}.dump();
  }

  const ModelLimits& limits_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  Json out_;
  std::string kwargs_;
  std::string_view variable_;
  bool stream_ = true;
};

Parsed<OllamaCall> ParseOllama(std::string_view body, const ModelLimits& limits, bool chat,
                               bool chats) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  OllamaReader reader(*json, limits);
  bool raw = false;
  const Parsed<std::optional<Json>> read = chat ? reader.Chat() : reader.Generate(chats, raw);
  if (!read) return Refuse(read.error());
  if (!*read) return OllamaCall{.load = true};
  auto call = raw ? ReadCompletionCall(**read, limits) : ReadChatCall(**read, limits);
  if (!call) return Refuse(std::move(call).error());
  call->template_kwargs_json = reader.template_kwargs();
  call->effort_variable = reader.effort_variable();
  return OllamaCall{.raw = raw, .generation = *std::move(call)};
}

}  // namespace

void ReadOllamaModel(JsonFields& fields, const ModelLimits& limits) {
  constexpr std::string_view kLatest = ":latest";
  std::string name;
  if (!fields.Text({"model", "name"}, name) || limits.Serves(name)) return;
  std::string_view bare = name;
  if (bare.ends_with(kLatest)) bare.remove_suffix(kLatest.size());
  if (!limits.Serves(bare)) fields.Refuse(NoSuchModel(name, limits.name));
}

Parsed<OllamaCall> ParseOllamaChat(std::string_view body, const ModelLimits& limits) {
  return ParseOllama(body, limits, true, true);
}

Parsed<OllamaCall> ParseOllamaGenerate(std::string_view body, const ModelLimits& limits,
                                       bool chats) {
  return ParseOllama(body, limits, false, chats);
}

std::optional<ApiError> CheckOllamaShow(std::string_view body, const ModelLimits& limits) {
  const auto read = ReadBody<bool>(body, [&](JsonFields& fields, bool& verbose) {
    ReadOllamaModel(fields, limits);
    fields.Switch("verbose", verbose);
    for (const char* const name : {"verbose", "system", "template", "options"}) fields.Idle(name);
  });
  return read ? std::nullopt : std::optional(read.error());
}

}  // namespace foretoken::server
