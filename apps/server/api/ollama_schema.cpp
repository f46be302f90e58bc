// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama_schema.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/api/json_fields.h"
#include "server/api/json_member.h"
#include "server/api/json_tree.h"
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
  OllamaReader(const Json& json, std::string_view body, const ModelLimits& limits)
      : body_(body), limits_(limits), fields_(json, "", error_) {}

  // Nothing: there are no messages.
  Parsed<std::optional<std::string>> Chat() {
    ReadShared();
    for (const char* const name : {"tools", "tool_choice", "parallel_tool_calls"})
      if (fields_.Has(name)) Put(name, RawMember(body_, {name}));
    const Json* const messages = fields_.Find("messages");
    const bool some = messages != nullptr && !(messages->is_array() && messages->empty());
    if (some && !messages->is_array()) fields_.Bad("messages", "it is not a list; give one");
    fields_.Finish();
    if (some && !error_)
      Put("messages", MessagesOfOllama(*messages, RawMember(body_, {"messages"}), error_));
    return Body(some);
  }

  // Nothing: there is no prompt. raw: in and out; true: a completion, otherwise a chat.
  Parsed<std::optional<std::string>> Generate(bool chats, bool& raw) {
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
      Put("prompt", Json(prompt).dump());
    } else {
      const auto message = [](const char* role, const std::string& text) {
        return fmt::format("{{\"role\":\"{}\",\"content\":{}}}", role, Json(text).dump());
      };
      const std::string first = system.empty() ? "" : message("system", system) + ",";
      Put("messages", "[" + first + message("user", prompt) + "]");
    }
    return Body(!prompt.empty());
  }

  const std::string& template_kwargs() const { return kwargs_; }
  std::string_view effort_variable() const { return variable_; }

 private:
  void Put(std::string_view name, std::string_view json) {
    out_.append(out_.empty() ? "{\"" : ",\"").append(name).append("\":").append(json);
  }

  Parsed<std::optional<std::string>> Body(bool asks) {
    if (error_) return Refuse(*std::move(error_));
    if (!asks) return std::nullopt;
    return std::move(out_) + "}";
  }

  void ReadShared() {
    ReadOllamaModel(fields_, limits_);
    fields_.Switch("stream", stream_);
    Put("stream", stream_ ? "true" : "false");
    ReadFormat();
    ReadOptions();
    ReadThink();
    bool logprobs = false, any = false;
    std::optional<int> top;
    fields_.Switch("logprobs", logprobs);
    fields_.Integer("top_logprobs", 0, 20, top);
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
    if (*format == "json") return Put("response_format", R"({"type":"json_object"})");
    if (!format->is_object())
      return fields_.Bad("format", JsonFields::Shown(*format) +
                                       " is no form; use \"json\", or give a JSON Schema");
    Put("response_format",
        fmt::format(R"({{"type":"json_schema","json_schema":{{"name":"answer","schema":{}}}}})",
                    RawMember(body_, {"format"})));
  }

  void ReadOptions() {
    const Json* const options = fields_.Object("options");
    std::optional<int> most;
    if (options != nullptr) {
      JsonFields fields(*options, "options.", error_);
      for (const std::string_view name : kSameOptions)
        if (fields.Has(name)) Put(name, RawMember(body_, {"options", name}));
      for (const std::string_view name : kIdleOptions)
        fields.NoteIdle(name, fields.FindForeign(name, "the start of the server has decided it"));
      fields.Integer("num_predict", -2, 1 << 24, most);
      fields.Finish();
    }
    Put("max_tokens", fmt::format("{}", most.value_or(0) > 0 ? *most : -1));
  }

  // Templates that let a model think know these variables.
  void ReadThink() {
    const Json* const think = fields_.Find("think");
    if (think == nullptr || *think == "") return;
    if (!think->is_boolean() && !think->is_string())
      return fields_.Bad("think", JsonFields::Shown(*think) +
                                      " is neither true, false nor a level; give one of them");
    variable_ = think->is_boolean() ? "enable_thinking" : "reasoning_effort";
    kwargs_ = fmt::format("{{\"{}\":{}}}", variable_, think->dump());
  }

  const std::string_view body_;
  const ModelLimits& limits_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  std::string out_, kwargs_;
  std::string_view variable_;
  bool stream_ = true;
};

// The body of a call of OpenAI's, and what else was read.
struct OllamaBody {
  std::optional<std::string> text;
  bool raw = false;
  std::string template_kwargs;
  std::string_view effort_variable = {};
};

// The tree of the body is gone when the other body is read.
Parsed<OllamaBody> ReadOllamaBody(std::string_view body, const ModelLimits& limits, bool chat,
                                  bool chats) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  OllamaReader reader(*json, body, limits);
  OllamaBody read;
  auto text = chat ? reader.Chat() : reader.Generate(chats, read.raw);
  if (!text) return Refuse(std::move(text).error());
  read.text = *std::move(text);
  read.template_kwargs = reader.template_kwargs();
  read.effort_variable = reader.effort_variable();
  return read;
}

Parsed<OllamaCall> ParseOllama(std::string_view body, const ModelLimits& limits, bool chat,
                               bool chats) {
  auto read = ReadOllamaBody(body, limits, chat, chats);
  if (!read) return Refuse(std::move(read).error());
  if (!read->text) return OllamaCall{.load = true};
  auto call =
      read->raw ? ParseCompletionCall(*read->text, limits) : ParseChatCall(*read->text, limits);
  if (!call) return Refuse(std::move(call).error());
  call->template_kwargs_json = std::move(read->template_kwargs);
  call->effort_variable = read->effort_variable;
  return OllamaCall{.raw = read->raw, .generation = *std::move(call)};
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
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return json.error();
  std::optional<ApiError> error;
  JsonFields fields(*json, "", error);
  ReadOllamaModel(fields, limits);
  bool verbose = false;
  fields.Switch("verbose", verbose);
  for (const char* const name : {"verbose", "system", "template", "options"}) fields.Idle(name);
  fields.Finish();
  return error;
}

}  // namespace foretoken::server
