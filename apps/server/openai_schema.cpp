// SPDX-License-Identifier: Apache-2.0
#include "server/openai_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "foretoken/speculative_config.h"
#include "server/answer_format.h"
#include "server/json_fields.h"

namespace foretoken::server {
namespace {

constexpr int kMaxDepth = 72;  // a JSON Schema's own 64, and the fields around it
constexpr int kMaxTokens = 1 << 24;
constexpr int kMaxTopLogprobs = 20;
constexpr int kMaxMessages = 4096;
constexpr std::size_t kMaxStops = 4, kMaxStopBytes = 1024;
constexpr int kCompletionTokens = 16;  // OpenAI's, where /v1/completions gives no max_tokens
// The settings that requests may change, as SetSpeculativeOption knows them.
constexpr std::string_view kMethodKey = "speculative_method",
                           kStrategyKey = "rejection_sampling_strategy";

// Fields of OpenAI's that concern its own service: they are taken and change nothing.
constexpr auto kWithoutEffect = std::to_array<std::string_view>(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
     "prompt_cache_retention"});

// Fields of OpenAI's that foretoken lacks. They are refused unless they ask for nothing: null, an
// empty list, or the value of the second column.
struct Lacking {
  std::string_view name;
  const char* harmless;  // as JSON; "": none
  const char* advice;
};
constexpr auto kLackingInBoth = std::to_array<Lacking>({
    {"suffix", "\"\"", "texts are only continued; leave it out"},
    {"best_of", "1", "every choice is returned; use n"},
});
constexpr auto kLackingInChat = std::to_array<Lacking>({
    {"tools", "[]", "models here call no tools; leave it out"},
    {"tool_choice", "\"none\"", "models here call no tools; leave it out"},
    {"parallel_tool_calls", "", "models here call no tools; leave it out"},
    {"functions", "[]", "models here call no functions; leave it out"},
    {"function_call", "\"none\"", "models here call no functions; leave it out"},
    {"audio", "", "models here read and write text; leave it out"},
    {"modalities", "[\"text\"]", "models here read and write text; leave it out"},
    {"reasoning_effort", "", "the model decides that; leave it out"},
    {"verbosity", "", "the model decides that; leave it out"},
    {"web_search_options", "", "nothing is searched; leave it out"},
});

// Notes names that are given twice: one of them would be silently ignored.
class Watch {
 public:
  bool See(Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(value.get<std::string>()).second)
      problem_ = fmt::format("{} is given twice; keep one", JsonFields::Shown(value));
    return true;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> names_;
  std::string problem_;
};

// Depth, before anything is built of the text.
bool TooDeep(std::string_view body) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '{' || c == '[') && ++depth > kMaxDepth) return true;
    if (!quoted && (c == '}' || c == ']')) --depth;
  }
  return false;
}

Parsed<Json> ParseObject(std::string_view body) {
  const auto bad = [](const std::string& why) {
    return Refuse({.message = "body: " + why, .code = "invalid_json"});
  };
  if (body.empty()) return bad("it is empty; send a JSON object");
  if (TooDeep(body)) return bad("it is nested too deeply; flatten it");
  // The library takes one for the end.
  if (body.find('\0') != body.npos) return bad("there is a NUL byte in it; send a JSON object");
  Watch watch;
  Json json = Json::parse(
      body.begin(), body.end(),
      [&watch](int, Json::parse_event_t event, Json& value) { return watch.See(event, value); },
      false);
  if (json.is_discarded()) return bad("it is not valid JSON in UTF-8; send a JSON object");
  if (!watch.problem().empty()) return bad(watch.problem());
  if (!json.is_object()) return bad("it is not an object; send one: {...}");
  return json;
}

// Reads a body of generation into a call, with the fields in one JsonFields.
class CallReader {
 public:
  CallReader(const Json& json, std::string_view body, const ModelLimits& limits, bool chat)
      : body_(body), limits_(limits), fields_(json, "", error_) {
    call_.chat = chat;
  }

  Parsed<GenerationCall> Read() {
    ReadModel();
    if (call_.chat)
      ReadMessages();
    else
      ReadPrompts();
    ReadLength();
    ReadStops();
    ReadSampling();
    ReadAnswerFormat(body_, fields_, request().sampling.grammar);
    ReadBias();
    ReadChoices();
    ReadStreaming();
    ReadLogprobs();
    ReadPrediction();
    ReadSpeculation();
    ReadLacking();
    fields_.Finish(kWithoutEffect);
    if (error_) return Refuse(*std::move(error_));
    return std::move(call_);
  }

 private:
  Request& request() { return call_.request; }

  void ReadModel() {
    std::string model = limits_.name;
    fields_.Text("model", model);
    if (model != limits_.name && !error_) error_ = NoSuchModel(model, limits_.name);
  }

  // A list of token ids; false: something is wrong with it.
  bool ReadTokens(std::string_view name, const Json& list, std::vector<std::int32_t>& out) {
    for (const Json& value : list) {
      const auto id = JsonFields::WholeNumber(value);
      if (!id || *id < 0 || *id >= limits_.vocabulary_size) {
        fields_.Bad(name, fmt::format("{} is not a token; use ids from 0 to {}",
                                      JsonFields::Shown(value), limits_.vocabulary_size - 1));
        return false;
      }
      out.push_back(static_cast<std::int32_t>(*id));
    }
    return true;
  }

  void ReadPrompts() {
    const Json* const value = fields_.Find("prompt");
    if (value == nullptr)
      return fields_.Bad("prompt", "it is missing; give a text or a list of tokens");
    if (value->is_array() && !value->empty() && !value->front().is_number()) {
      for (const Json& prompt : *value) ReadPrompt(prompt);
    } else {
      ReadPrompt(*value);
    }
  }

  void ReadPrompt(const Json& value) {
    if (fields_.failed()) return;
    if (value.is_string()) {
      call_.prompts.emplace_back(value.get<std::string>());
    } else if (value.is_array() && !value.empty()) {
      std::vector<std::int32_t> tokens;
      if (ReadTokens("prompt", value, tokens)) call_.prompts.emplace_back(std::move(tokens));
    } else {
      fields_.Bad("prompt",
                  fmt::format("{} is not a prompt; give a text, a list of token ids, or a list of "
                              "such",
                              value.is_array() ? "an empty list" : JsonFields::Shown(value)));
    }
  }

  void ReadMessages() {
    const Json* const value = fields_.Find("messages");
    if (value == nullptr || !value->is_array() || value->empty() || value->size() > kMaxMessages)
      return fields_.Bad(
          "messages", fmt::format("it is not a list of 1 to {} messages; give one", kMaxMessages));
    for (std::size_t i = 0; i < value->size() && !fields_.failed(); ++i)
      ReadMessage((*value)[i], fmt::format("messages[{}]", i));
  }

  void ReadMessage(const Json& value, const std::string& where) {
    if (!value.is_object())
      return fields_.Bad(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
    JsonFields fields(value, where + ".", error_);
    ChatMessage message;
    fields.Text("role", message.role);
    if (message.role == "developer") message.role = "system";  // OpenAI's newer name
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      fields.Bad("role", fmt::format("'{}' is not a role; use system, user or assistant",
                                     message.role.substr(0, 32)));
    if (const Json* const content = fields.Find("content"))
      message.content = ContentOf(*content, fields);
    else
      fields.Bad("content", "it is missing; give a text");
    fields.Finish();
    call_.messages.push_back(std::move(message));
  }

  // A text, or a list of parts that are texts.
  std::string ContentOf(const Json& content, JsonFields& message) {
    if (content.is_string()) return content.get<std::string>();
    std::string text;
    bool good = content.is_array();
    if (good)
      for (const Json& part : content) {
        good &= part.is_object() && part.size() == 2 && part.value("type", Json()) == "text" &&
                part.value("text", Json()).is_string();
        if (good) text += part["text"].get<std::string>();
      }
    if (!good)
      message.Bad("content",
                  "it is not a text; give one, or a list of {\"type\": \"text\", \"text\": ...}");
    return text;
  }

  void ReadLength() {
    std::optional<int> newer;
    fields_.Integer("max_tokens", 0, kMaxTokens, call_.max_tokens);
    fields_.Integer("max_completion_tokens", 0, kMaxTokens, newer);
    if (newer && call_.max_tokens)
      fields_.Bad("max_completion_tokens", "max_tokens is given too; keep one of them");
    if (newer) call_.max_tokens = newer;
    if (!call_.max_tokens && !call_.chat) call_.max_tokens = kCompletionTokens;
    fields_.Integer("min_tokens", 0, kMaxTokens, request().min_new_tokens);
    if (call_.max_tokens && request().min_new_tokens > *call_.max_tokens)
      fields_.Bad("min_tokens", fmt::format("{} is more than max_tokens {}; lower it",
                                            request().min_new_tokens, *call_.max_tokens));
    fields_.Switch("ignore_eos", request().ignore_eos);
  }

  void ReadStops() {
    if (const Json* const value = fields_.Find("stop")) {
      const Json list = value->is_array() ? *value : Json::array({*value});
      if (list.size() > kMaxStops)
        return fields_.Bad(
            "stop", fmt::format("{} texts are more than {}; give fewer", list.size(), kMaxStops));
      for (const Json& stop : list) {
        if (!stop.is_string() || stop.get_ref<const std::string&>().empty() ||
            stop.get_ref<const std::string&>().size() > kMaxStopBytes)
          return fields_.Bad("stop", fmt::format("{} is not a text of 1 to {} bytes; give one",
                                                 JsonFields::Shown(stop), kMaxStopBytes));
        request().stop.push_back(stop.get<std::string>());
      }
    }
    if (const Json* const value = fields_.Find("stop_token_ids")) {
      if (!value->is_array())
        return fields_.Bad("stop_token_ids",
                           JsonFields::Shown(*value) + " is not a list of token ids; give one");
      ReadTokens("stop_token_ids", *value, request().stop_token_ids);
    }
  }

  void ReadSampling() {
    SamplingParameters& s = request().sampling;
    fields_.Number("temperature", 0, 2, s.temperature);
    fields_.Number("top_p", 0, 1, s.top_p);
    fields_.Integer("top_k", -1, kMaxTokens, s.top_k);
    fields_.Number("min_p", 0, 1, s.min_p);
    fields_.Number("typical_p", 0, 1, s.typical_p);
    fields_.Number("eta", 0, 0.999999, s.eta);
    fields_.Number("repetition_penalty", 1e-3, 1e3, s.repetition_penalty);
    fields_.Number("frequency_penalty", -2, 2, s.frequency_penalty);
    fields_.Number("presence_penalty", -2, 2, s.presence_penalty);
    if (const Json* const seed = fields_.Find("seed")) {
      const bool big = seed->is_number_unsigned();
      const auto value = JsonFields::WholeNumber(*seed);
      if (!big && !value)
        fields_.Bad("seed", JsonFields::Shown(*seed) + " is not a whole number; give one");
      else
        call_.seed = big ? seed->get<std::uint64_t>() : static_cast<std::uint64_t>(*value);
    }
  }

  void ReadBias() {
    const Json* const map = fields_.Object("logit_bias");
    if (map == nullptr) return;
    for (const auto& [key, value] : map->items()) {
      std::int32_t id = -1;
      const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (problem != std::errc() || end != key.data() + key.size() || id < 0 ||
          id >= limits_.vocabulary_size)
        return fields_.Bad("logit_bias",
                           fmt::format("{} is not a token; use ids from 0 to {}",
                                       JsonFields::Shown(Json(key)), limits_.vocabulary_size - 1));
      const double bias = value.is_number() ? value.get<double>() : 1000;
      if (!(bias >= -100 && bias <= 100))
        return fields_.Bad("logit_bias", fmt::format("{} of token {} is not in [-100, 100]; give a "
                                                     "number in that range",
                                                     JsonFields::Shown(value), id));
      request().sampling.logit_bias[id] = static_cast<float>(bias);
    }
  }

  void ReadChoices() {
    fields_.Integer("n", 1, 128, call_.n);
    const std::int64_t prompts = std::max<std::int64_t>(1, std::ssize(call_.prompts));
    if (prompts * call_.n > limits_.max_choices)
      fields_.Bad(
          call_.n > 1 ? "n" : "prompt",
          fmt::format("{} prompts with {} choices each are more than the {} that this server "
                      "takes at a time; ask for fewer",
                      prompts, call_.n, limits_.max_choices));
  }

  void ReadStreaming() {
    fields_.Switch("stream", call_.stream);
    if (const Json* const options = fields_.Object("stream_options")) {
      if (!call_.stream)
        fields_.Bad("stream_options", "stream is not true; set it, or leave the options out");
      JsonFields fields(*options, "stream_options.", error_);
      bool padding = false;  // OpenAI's protection against who reads sizes on its wires
      fields.Switch("include_usage", call_.include_usage);
      fields.Switch("include_obfuscation", padding);
      if (padding) fields.Bad("include_obfuscation", "foretoken pads nothing; leave it out");
      fields.Finish();
    }
  }

  void ReadLogprobs() {
    if (!call_.chat) {
      fields_.Integer("logprobs", 0, kMaxTopLogprobs, request().logprobs);
      fields_.Switch("echo", call_.echo);
      if (call_.echo) request().prompt_logprobs = request().logprobs;
      return;
    }
    bool wanted = false;
    std::optional<int> top;
    fields_.Switch("logprobs", wanted);
    fields_.Integer("top_logprobs", 0, kMaxTopLogprobs, top);
    if (top && !wanted) fields_.Bad("top_logprobs", "logprobs is not true; set it");
    if (wanted) request().logprobs = top.value_or(0);
  }

  void ReadPrediction() {
    const Json* const value = fields_.Object("prediction");
    if (value == nullptr) return;
    JsonFields fields(*value, "prediction.", error_);
    std::string type;
    fields.Text("type", type);
    if (type != "content") fields.Bad("type", "it is not \"content\"; that is the one there is");
    if (const Json* const content = fields.Find("content"))
      request().prediction = ContentOf(*content, fields);
    else
      fields.Bad("content", "it is missing; give a text");
    fields.Finish();
  }

  // The object `speculative`, and llama.cpp's dotted names for the same.
  void ReadSpeculation() {
    Settings object, dotted;
    if (const Json* const value = fields_.Object("speculative")) {
      JsonFields fields(*value, "speculative.", error_);
      ReadType(fields, "type", object.type);
      ReadStrategy(fields, "strategy", object.strategy);
      fields.Integer("num_speculative_tokens", 0, 64, object.n_max);
      fields.Integer("n_min", 0, 64, object.n_min);
      fields.Number("p_min", 0, 1, object.p_min);
      fields.Switch("enabled", request().speculative.enabled);
      fields.Switch("trace", call_.trace);
      fields.Finish();
      if (call_.trace && !call_.stream)
        fields.Bad("trace", "stream is not true; only streams show rounds");
    }
    ReadType(fields_, "speculative.type", dotted.type);
    ReadStrategy(fields_, "speculative.strategy", dotted.strategy);
    fields_.Integer("speculative.n_max", 0, 64, dotted.n_max);
    fields_.Integer("speculative.n_min", 0, 64, dotted.n_min);
    fields_.Number("speculative.p_min", 0, 1, dotted.p_min);
    SpeculativeParameters& s = request().speculative;
    s.method = OneOf("speculative.type", object.type, dotted.type);
    s.strategy = OneOf("speculative.strategy", object.strategy, dotted.strategy);
    s.num_speculative_tokens = OneOf("speculative.n_max", object.n_max, dotted.n_max);
    s.min_speculative_tokens = OneOf("speculative.n_min", object.n_min, dotted.n_min);
    s.draft_p_min = OneOf("speculative.p_min", object.p_min, dotted.p_min);
    UsePrediction();
  }

  struct Settings {
    std::optional<std::string> type;
    std::optional<VerifyStrategy> strategy;
    std::optional<int> n_max, n_min;
    std::optional<float> p_min;
  };

  template <typename T>
  std::optional<T> OneOf(const char* name, const std::optional<T>& a, const std::optional<T>& b) {
    if (a && b && *a != *b)
      fields_.Bad(name, "the object speculative gives another value; keep one of them");
    return a ? a : b;
  }

  // A method, or a list of them; made canonical ("draft" is standalone).
  void ReadType(JsonFields& fields, std::string_view name, std::optional<std::string>& out) {
    const Json* const value = fields.Find(name);
    if (value == nullptr) return;
    std::string text;
    bool good = value->is_string() || (value->is_array() && !value->empty());
    if (value->is_string()) text = value->get<std::string>();
    if (value->is_array())
      for (const Json& method : *value) {
        good &= method.is_string();
        if (good) text += (text.empty() ? "" : ",") + method.get<std::string>();
      }
    if (!good || text.empty())
      return fields.Bad(name, "it is not a method's name or a list of such; give one");
    SpeculativeOptions options;
    if (const auto set = SetSpeculativeOption(options, kMethodKey, text); !set)
      return fields.Bad(name, WithoutKey(kMethodKey, set.error().message));
    const auto config = SpeculativeConfig::Create(options);
    if (!config) return fields.Bad(name, WithoutKey(kMethodKey, config.error().message));
    out = config->options().method;
  }

  void ReadStrategy(JsonFields& fields, std::string_view name, std::optional<VerifyStrategy>& out) {
    std::string text;
    if (!fields.Text(name, text)) return;
    SpeculativeOptions options;
    if (const auto set = SetSpeculativeOption(options, kStrategyKey, text); !set)
      return fields.Bad(name, WithoutKey(kStrategyKey, set.error().message));
    out = options.strategy;
  }

  // The field's name stands before it already.
  static std::string WithoutKey(std::string_view key, const std::string& message) {
    return message.starts_with(std::string(key) + ": ") ? message.substr(key.size() + 2) : message;
  }

  // A prediction asks for the method of this name, beside the others, unless a type is given.
  void UsePrediction() {
    std::optional<std::string>& method = request().speculative.method;
    if (request().prediction.empty() || method) return;
    const std::string& own = limits_.method;
    if (own.find("prediction") != std::string::npos || own == "portfolio") return;
    method = own.empty() || own == "none" ? "prediction" : own + ",prediction";
  }

  void ReadLacking() {
    for (const Lacking& field : kLackingInBoth) RefuseLacking(field);
    if (call_.chat)
      for (const Lacking& field : kLackingInChat) RefuseLacking(field);
  }

  void RefuseLacking(const Lacking& field) {
    const Json* const value = fields_.Find(field.name);
    if (value == nullptr) return;
    const Json harmless = Json::parse(field.harmless, nullptr, false);
    if (harmless.is_discarded() || *value != harmless)
      fields_.Bad(field.name, field.advice, "unsupported_parameter");
  }

  const std::string_view body_;
  const ModelLimits& limits_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  GenerationCall call_;
};

}  // namespace

Parsed<GenerationCall> ParseCompletionCall(std::string_view body, const ModelLimits& limits) {
  const Parsed<Json> json = ParseObject(body);
  if (!json) return Refuse(json.error());
  return CallReader(*json, body, limits, false).Read();
}

Parsed<GenerationCall> ParseChatCall(std::string_view body, const ModelLimits& limits) {
  const Parsed<Json> json = ParseObject(body);
  if (!json) return Refuse(json.error());
  return CallReader(*json, body, limits, true).Read();
}

Parsed<TokenizeCall> ParseTokenizeCall(std::string_view body) {
  const Parsed<Json> json = ParseObject(body);
  if (!json) return Refuse(json.error());
  std::optional<ApiError> error;
  JsonFields fields(*json, "", error);
  TokenizeCall call;
  if (!fields.Has("content")) fields.Bad("content", "it is missing; give a text");
  fields.Text("content", call.content);
  fields.Switch("add_special", call.add_special);
  fields.Switch("parse_special", call.parse_special);
  fields.Switch("with_pieces", call.with_pieces);
  fields.Finish();
  if (error) return Refuse(*std::move(error));
  return call;
}

Parsed<DetokenizeCall> ParseDetokenizeCall(std::string_view body, const ModelLimits& limits) {
  const Parsed<Json> json = ParseObject(body);
  if (!json) return Refuse(json.error());
  std::optional<ApiError> error;
  JsonFields fields(*json, "", error);
  DetokenizeCall call;
  const Json* const tokens = fields.Find("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    fields.Bad("tokens", "it is not a list of token ids; give one");
  } else {
    for (const Json& value : *tokens) {
      const auto id = JsonFields::WholeNumber(value);
      if (!id || *id < 0 || *id >= limits.vocabulary_size)
        fields.Bad("tokens", fmt::format("{} is not a token; use ids from 0 to {}",
                                         JsonFields::Shown(value), limits.vocabulary_size - 1));
      call.tokens.push_back(id ? static_cast<std::int32_t>(*id) : 0);
    }
  }
  fields.Switch("special", call.special);
  fields.Finish();
  if (error) return Refuse(*std::move(error));
  return call;
}

}  // namespace foretoken::server
