// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foretoken/drafts.h"
#include "foretoken/speculative_config.h"
#include "server/api/answer_format.h"
#include "server/api/body_limits.h"
#include "server/api/chat_messages.h"
#include "server/api/foreign_fields.h"
#include "server/api/json_fields.h"
#include "server/api/sampling_fields.h"

namespace foretoken::server {
namespace {

// The settings that requests may change, with their names for SetSpeculativeOption.
constexpr std::string_view kMethodKey = "speculative_method",
                           kStrategyKey = "rejection_sampling_strategy";

// Reads the body of a generation request into a call, with the fields in one JsonFields.
class CallReader {
 public:
  CallReader(const Json& body, const ModelLimits& limits, bool chat, bool verifies = false)
      : limits_(limits), fields_(body, "", error_), verifies_(verifies) {
    call_.chat = chat;
  }

  Parsed<GenerationCall> Read() {
    ReadModel(fields_, limits_);
    if (call_.chat)
      ReadChat();
    else
      ReadPrompts();
    ReadLength();
    ReadStops();
    ReadSamplingFields(fields_, limits_.vocabulary_size, request().sampling, call_.dry_breakers);
    ReadSeed();
    ReadAnswerFormat(fields_, request().sampling.grammar);
    fields_.Switch("cache_prompt", request().reuse_prefix);
    ReadCacheSalt(fields_, request().cache_salt);
    ReadSlot();
    ReadChoices();
    ReadStreaming();
    ReadLogprobs();
    ReadPrediction();
    ReadSpeculation();
    if (verifies_) ReadDrafts();
    ReadForeignFields(fields_, call_.chat, call_.notices);
    fields_.Finish();
    if (error_) return Refuse(*std::move(error_));
    return std::move(call_);
  }

 private:
  Request& request() { return call_.request; }

  void ReadPrompts() {
    const Json* const value = fields_.Find("prompt");
    if (value == nullptr)
      return fields_.Bad("prompt", "it is missing; give a text or a list of tokens");
    if (value->is_array() && !value->empty() && !value->front().is_number()) {
      for (const Json& prompt : *value) ReadPrompt(prompt);
    } else {
      ReadPrompt(*value);
    }
    fields_.Switch("add_special_tokens", request().add_special);
  }

  void ReadPrompt(const Json& value) {
    if (fields_.failed()) return;
    if (value.is_string()) {
      call_.prompts.emplace_back(value.text());
    } else if (value.is_array() && !value.empty()) {
      std::vector<std::int32_t> tokens;
      if (ReadTokenIds("prompt", value, limits_.vocabulary_size, fields_, tokens))
        call_.prompts.emplace_back(std::move(tokens));
    } else {
      fields_.Bad("prompt",
                  fmt::format("{} is not a prompt; give a text, a list of token ids, or a list of "
                              "such",
                              value.is_array() ? "an empty list" : JsonFields::Shown(value)));
    }
  }

  void ReadChat() {
    call_.messages = ReadMessages(fields_);
    fields_.Switch("add_generation_prompt", call_.add_generation_prompt);
    bool special = false;  // the template writes them all
    if (fields_.Switch("add_special_tokens", special) && special)
      fields_.Bad("add_special_tokens", "the template writes them already; leave it out",
                  "unsupported_parameter");
    call_.tools = ReadTools(fields_, call_.notices);
    ReadReasoning();
    if (const Json* const more = fields_.Object("chat_template_kwargs")) kwargs_.update(*more);
    if (!kwargs_.is_null()) call_.template_kwargs_json = kwargs_.written();
  }

  // reasoning_format is llama.cpp's; the effort is a variable of templates that know it.
  void ReadReasoning() {
    constexpr std::string_view kForms[] = {"auto", "deepseek", "deepseek-legacy", "none"};
    constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    std::string format = "auto", effort;
    fields_.OneOf("reasoning_format", "a form", kForms, format);
    call_.divides_thoughts = format != "none";
    int budget = -1;  // none
    if (fields_.Integer({"thinking_budget_tokens", "thinking_token_budget"}, -1, kMaxTextTokens,
                        budget) &&
        budget >= 0)
      call_.thought_budget = budget;
    if (!fields_.OneOf("reasoning_effort", "an effort", kEfforts, effort)) return;
    call_.effort_variable = effort == "none" ? "enable_thinking" : "reasoning_effort";
    kwargs_[call_.effort_variable] = effort == "none" ? Json(false) : Json(effort);
  }

  void ReadLength() {
    fields_.Integer({"max_tokens", "max_completion_tokens", "n_predict", "max_new_tokens"}, -1,
                    kMaxTextTokens, call_.max_tokens);
    if (!call_.max_tokens && !call_.chat) call_.max_tokens = kCompletionTokens;
    if (call_.max_tokens == -1) call_.max_tokens.reset();
    int& least = request().min_new_tokens;
    fields_.Integer({"min_tokens", "min_new_tokens"}, 0, kMaxTextTokens, least);
    if (call_.max_tokens && least > *call_.max_tokens)
      fields_.Bad("min_tokens",
                  fmt::format("{} is more than max_tokens {}; lower it", least, *call_.max_tokens));
    fields_.Switch("ignore_eos", request().ignore_eos);
    bool skips_control = true;
    fields_.Switch("skip_special_tokens", skips_control);
    if (!skips_control) request().control_texts = ControlTexts::kPlain;
  }

  void ReadStops() {
    if (const Json* const value = fields_.Find("stop")) {
      const Json list = value->is_array() ? *value : Json::array({*value});
      for (const Json& stop : list) {
        if (stop.is_null() || stop == "") continue;  // it stops nothing
        if (!stop.is_string() || stop.text().size() > kMostStopBytes)
          return fields_.Bad("stop", fmt::format("{} is not a text of at most {} bytes; give one",
                                                 JsonFields::Shown(stop), kMostStopBytes));
        request().stop.push_back(stop.text());
      }
      if (request().stop.size() > kMostStops)
        return fields_.Bad("stop", fmt::format("{} texts are more than {}; give fewer",
                                               request().stop.size(), kMostStops));
    }
    if (const Json* const value = fields_.Find("stop_token_ids")) {
      if (!value->is_array())
        return fields_.Bad("stop_token_ids",
                           JsonFields::Shown(*value) + " is not a list of token ids; give one");
      ReadTokenIds("stop_token_ids", *value, limits_.vocabulary_size, fields_,
                   request().stop_token_ids);
    }
  }

  // -1: the server chooses one.
  void ReadSeed() {
    std::string_view first;
    for (const std::string_view name : {"seed", "sampling_seed"}) {
      const Json* const seed = fields_.Find(name);
      if (seed == nullptr) continue;
      const auto value = JsonFields::WholeNumber(*seed);
      std::optional<std::uint64_t> read = seed->natural();
      if (!read && !value)
        return fields_.Bad(name, JsonFields::Shown(*seed) + " is not a whole number; give one");
      if (!read && *value != -1) read = static_cast<std::uint64_t>(*value);
      if (!first.empty() && read != call_.seed)
        return fields_.Bad(name, "seed is given too, with another value; keep one of them");
      call_.seed = read, first = name;
    }
  }

  // Editors name a slot wherever they ask.
  void ReadSlot() {
    constexpr int kMostNamed = 1 << 16;
    int slot = -1;
    fields_.Integer("id_slot", -1, kMostNamed, slot);
    if (slot < limits_.slots)
      request().slot = slot;
    else
      call_.notices.push_back(
          fmt::format("id_slot: there are {} slots; it changes nothing", limits_.slots));
  }

  void ReadChoices() {
    fields_.Integer({"n", "n_cmpl"}, 1, 128, call_.n);
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
    const Json* const options = fields_.Object("stream_options");
    if (options == nullptr) return;
    JsonFields fields(*options, "stream_options.", error_);
    bool padding = false, often = false;
    fields.Switch("include_usage", call_.include_usage);
    fields.Switch("include_obfuscation", padding);  // protects from readers of packet sizes
    fields.Switch("continuous_usage_stats", often);
    if (padding)
      call_.notices.emplace_back("stream_options.include_obfuscation: nothing is padded");
    if (often)
      call_.notices.emplace_back(
          "stream_options.continuous_usage_stats: the usage comes once, at the end");
    fields.Finish();
    if (call_.include_usage && !call_.stream)
      fields_.Bad("stream_options", "stream is not true; set it, or leave the options out");
  }

  // n_probs is llama.cpp's name; 0 means none.
  void ReadLogprobs() {
    std::optional<int> wanted, probs;
    fields_.Integer("n_probs", 0, kMostAlternatives, probs);
    if (probs == 0) probs.reset();
    const Json* const logprobs = fields_.Find("logprobs");
    if (call_.chat) {
      bool any = false;
      fields_.Switch("logprobs", any);
      fields_.Integer("top_logprobs", 0, kMostAlternatives, wanted);
      if (wanted.value_or(0) > 0 && !any && !probs)
        fields_.Bad("top_logprobs", "logprobs is not true; set it");
      if (!wanted && any && !probs) wanted = 0;
      if (!any && !probs) wanted.reset();
    } else if (logprobs != nullptr && *logprobs != false) {
      fields_.Integer("logprobs", 0, kMostAlternatives, wanted);
    }
    if (wanted && probs && *wanted != *probs)
      fields_.Bad("n_probs", "another number is given too; keep one of them");
    request().logprobs = wanted ? *wanted : probs.value_or(-1);
    if (call_.chat) return;
    fields_.Switch("echo", call_.echo);
    if (call_.echo) request().prompt_logprobs = request().logprobs;
  }

  void ReadPrediction() {
    const Json* const value = fields_.Object("prediction");
    if (value == nullptr) return;
    JsonFields fields(*value, "prediction.", error_);
    std::string type;
    fields.Text("type", type);
    if (type != "content") fields.Bad("type", "it is not \"content\"; that is the one there is");
    if (const Json* const content = fields.Find("content"))
      request().prediction = ReadContent(*content, "content", fields);
    else
      fields.Bad("content", "it is missing; give a text");
    fields.Finish();
  }

  // The object `speculative`, and llama.cpp's dotted names for the same fields.
  void ReadSpeculation() {
    constexpr SettingNames kOwn = {"type", "strategy", "num_speculative_tokens", "n_min", "p_min"};
    constexpr SettingNames kDotted = {"speculative.type", "speculative.strategy",
                                      "speculative.n_max", "speculative.n_min",
                                      "speculative.p_min"};
    Settings object;
    if (const Json* const value = fields_.Object("speculative")) {
      JsonFields fields(*value, "speculative.", error_);
      object = ReadSettings(fields, kOwn);
      fields.Switch("enabled", request().speculative.enabled);
      fields.Switch("trace", call_.trace);
      fields.Finish();
      if (call_.trace && !call_.stream)
        fields.Bad("trace", "stream is not true; only streams show rounds");
    }
    const Settings dotted = ReadSettings(fields_, kDotted);
    SpeculativeParameters& s = request().speculative;
    s.method = OneOf(kDotted.type, object.type, dotted.type);
    s.strategy = OneOf(kDotted.strategy, object.strategy, dotted.strategy);
    s.num_speculative_tokens = OneOf(kDotted.n_max, object.n_max, dotted.n_max);
    s.min_speculative_tokens = OneOf(kDotted.n_min, object.n_min, dotted.n_min);
    s.draft_p_min = OneOf(kDotted.p_min, object.p_min, dotted.p_min);
    UsePrediction();
  }

  void ReadDrafts() {
    ReadGenerated();
    const Json* const drafts = fields_.Find("drafts");
    const bool list = drafts != nullptr && drafts->is_array();
    if (drafts == nullptr)
      return fields_.Bad("drafts",
                         "they are missing; give a list of token ids, which may be empty, "
                         "or a text");
    if (!list && !drafts->is_string())
      return fields_.Bad("drafts", JsonFields::Shown(*drafts) +
                                       " is neither a list of token ids nor a text; give one");
    if (list && drafts->size() > kMaxDraft)
      return fields_.Bad("drafts", fmt::format("{} tokens are more than {}; give fewer",
                                               drafts->size(), kMaxDraft));
    std::vector<std::int32_t> tokens;
    if (list) ReadTokenIds("drafts", *drafts, limits_.vocabulary_size, fields_, tokens);
    call_.drafts = list ? Prompt(std::move(tokens)) : Prompt(drafts->text());
    RefuseBesideDrafts();
  }

  void ReadGenerated() {
    const Json* const generated = fields_.Find("generated");
    if (generated == nullptr) return;
    if (!generated->is_array())
      return fields_.Bad("generated",
                         JsonFields::Shown(*generated) + " is not a list of token ids; give one");
    ReadTokenIds("generated", *generated, limits_.vocabulary_size, fields_, request().generated);
    if (!generated->empty() && !call_.seed && !request().sampling.greedy())
      fields_.Bad("seed", "it is missing; give the one of the calls that gave these tokens");
  }

  void RefuseBesideDrafts() {
    constexpr const char* kCode = "unsupported_parameter";
    if (call_.n > 1) fields_.Bad("n", "drafts continue one text; ask for one", kCode);
    if (call_.prompts.size() > 1) fields_.Bad("prompt", "drafts continue one; give one", kCode);
    if (call_.stream) fields_.Bad("stream", "the tokens come together; leave it out", kCode);
    if (call_.echo) fields_.Bad("echo", "prompts do not come back; leave it out", kCode);
    if (!call_.tools.json.empty() || !call_.tools.use.tools.empty())
      fields_.Bad("tools", "drafts continue texts without calls; use /v1/chat/completions", kCode);
  }

  struct Settings {
    std::optional<std::string> type;
    std::optional<VerifyStrategy> strategy;
    std::optional<int> n_max, n_min;
    std::optional<float> p_min;
  };
  struct SettingNames {
    const char *type, *strategy, *n_max, *n_min, *p_min;
  };

  Settings ReadSettings(JsonFields& fields, const SettingNames& names) {
    Settings read;
    ReadType(fields, names.type, read.type);
    ReadStrategy(fields, names.strategy, read.strategy);
    fields.Integer(names.n_max, 0, kMaxDraft, read.n_max);
    fields.Integer(names.n_min, 0, kMaxDraft, read.n_min);
    fields.Number(names.p_min, 0, 1, read.p_min);
    return read;
  }

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
    if (value->is_string()) text = value->text();
    if (value->is_array())
      for (const Json& method : *value) {
        good &= method.is_string();
        if (good) text += (text.empty() ? "" : ",") + method.text();
      }
    if (!good || text.empty())
      return fields.Bad(name, "it is not a method's name or a list of such; give one");
    SpeculativeOptions options;
    if (const auto set = SetSpeculativeOption(options, kMethodKey, text); !set)
      return fields.Bad(name, set.error().why());
    const auto config = SpeculativeConfig::Create(options);
    if (!config) return fields.Bad(name, config.error().why());
    out = config->options().method;
  }

  void ReadStrategy(JsonFields& fields, std::string_view name, std::optional<VerifyStrategy>& out) {
    std::string text;
    if (!fields.Text(name, text)) return;
    SpeculativeOptions options;
    if (const auto set = SetSpeculativeOption(options, kStrategyKey, text); !set)
      return fields.Bad(name, set.error().why());
    out = options.strategy;
  }

  // A prediction adds the method of this name to the others, unless a type is given.
  void UsePrediction() {
    std::optional<std::string>& method = request().speculative.method;
    if (request().prediction.empty() || method) return;
    const std::string& own = limits_.method;
    if (own.find("prediction") != std::string::npos || own == "portfolio") return;
    method = own.empty() || own == "none" ? "prediction" : own + ",prediction";
  }

  const ModelLimits& limits_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  GenerationCall call_;
  Json kwargs_;  // variables of the template
  const bool verifies_;
};

}  // namespace

void ReadModel(JsonFields& fields, const ModelLimits& limits) {
  std::string model = limits.name;
  if (fields.Text("model", model) && !limits.Serves(model))
    fields.Refuse(NoSuchModel(model, limits.name));
}

bool ModelLimits::Serves(std::string_view model) const {
  return rules.any_model || model == name ||
         std::find(aliases.begin(), aliases.end(), model) != aliases.end();
}

Parsed<GenerationCall> ReadCompletionCall(const Json& body, const ModelLimits& limits) {
  return CallReader(body, limits, false).Read();
}

Parsed<GenerationCall> ReadChatCall(const Json& body, const ModelLimits& limits) {
  return CallReader(body, limits, true).Read();
}

Parsed<GenerationCall> ParseCompletionCall(std::string_view body, const ModelLimits& limits) {
  return ReadJsonObject(body).and_then(
      [&](const Json& json) { return ReadCompletionCall(json, limits); });
}

Parsed<GenerationCall> ParseChatCall(std::string_view body, const ModelLimits& limits) {
  return ReadJsonObject(body).and_then(
      [&](const Json& json) { return ReadChatCall(json, limits); });
}

Parsed<GenerationCall> ParseVerifyCall(std::string_view body, const ModelLimits& limits) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  const bool chat = !json->at("messages").is_null();
  if (chat && !json->at("prompt").is_null())
    return Refuse(BadField("messages", "a prompt is given too; keep one of them"));
  return CallReader(*json, limits, chat, true).Read();
}

void ReadCacheSalt(JsonFields& fields, std::string& salt) {
  if (fields.Text("cache_salt", salt) && salt.size() > kMostSaltBytes)
    fields.Bad("cache_salt", fmt::format("{} bytes are more than {}; give a shorter one",
                                         salt.size(), kMostSaltBytes));
}

Parsed<TokenizeCall> ParseTokenizeCall(std::string_view body, const ModelLimits& limits) {
  return ReadBody<TokenizeCall>(body, [&](JsonFields& fields, TokenizeCall& call) {
    ReadModel(fields, limits);
    const bool content = fields.Text({"content", "prompt"}, call.content);
    if (fields.Has("messages")) call.messages = ReadMessages(fields);
    if (content && fields.Has("messages"))
      fields.Bad("messages", "a content is given too; keep one of them");
    if (!content && !fields.Has("messages"))
      fields.Missing({"content", "prompt", "messages"}, "it is missing; give a text, or messages");
    fields.Switch("add_generation_prompt", call.add_generation_prompt);
    if (const Json* const tools = fields.Find("tools"); tools != nullptr) {
      if (!tools->is_array())
        fields.Bad("tools", "it is not a list; give a list of tools, or leave it out");
      else if (!tools->empty())
        call.tools_json = tools->written();
    }
    if (const Json* const more = fields.Object("chat_template_kwargs"))
      call.template_kwargs_json = more->written();
    fields.Switch("add_special", call.add_special);
    fields.Switch("parse_special", call.parse_special);
    fields.Switch("with_pieces", call.with_pieces);
  });
}

Parsed<DetokenizeCall> ParseDetokenizeCall(std::string_view body, const ModelLimits& limits) {
  return ReadBody<DetokenizeCall>(body, [&](JsonFields& fields, DetokenizeCall& call) {
    ReadModel(fields, limits);
    const Json* const tokens = fields.Find("tokens");
    if (tokens == nullptr || !tokens->is_array())
      fields.Bad("tokens", "it is not a list of token ids; give one");
    else
      ReadTokenIds("tokens", *tokens, limits.vocabulary_size, fields, call.tokens);
    fields.Switch("special", call.special);
  });
}

}  // namespace foretoken::server
