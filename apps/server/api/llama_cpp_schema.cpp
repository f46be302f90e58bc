// SPDX-License-Identifier: Apache-2.0
#include "server/api/llama_cpp_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "server/api/body_limits.h"
#include "server/api/json_fields.h"
#include "server/api/sampling_fields.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kLlamaCppLengths[] = {"n_predict", "max_tokens", "max_completion_tokens",
                                                 "max_new_tokens"};

// A filter, and the fields that count only where the list of samplers has it.
struct Sampler {
  std::string_view name;
  std::array<std::string_view, 4> fields;
};
constexpr Sampler kSamplers[] = {
    {"penalties",
     {"repeat_penalty", "repetition_penalty", "frequency_penalty", "presence_penalty"}},
    {"dry", {"dry_multiplier"}},
    {"top_n_sigma", {"top_n_sigma"}},
    {"top_k", {"top_k"}},
    {"typ_p", {"typ_p", "typical_p"}},
    {"top_p", {"top_p"}},
    {"min_p", {"min_p"}},
    {"xtc", {"xtc_probability"}},
    {"adaptive_p", {"adaptive_target"}},
    {"temperature", {"temperature", "temp", "dynatemp_range"}},
    {"infill", {}}};  // chooses among white space and ends
static_assert(kMostSamplers == 4 * std::size(kSamplers));

// A field that would change the text a little, and that clients for editors always send.
struct Limit {
  std::string_view name, advice;
};
constexpr Limit kIdleLimits[] = {
    {"t_max_predict_ms", "texts end by length, not by time; use n_predict"},
    {"t_max_prompt_ms", "prompts are read to their end"},
    {"n_indent", "no least indentation is kept"}};

template <typename List>
bool Contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// Writes the body of a completion of OpenAI's while it reads one of llama.cpp's.
class LlamaCppReader {
 public:
  LlamaCppReader(const Json& body, const ModelLimits& limits)
      : body_(body), limits_(limits), fields_(body, "", error_) {}

  void ReadPrompts() {
    const Json* const value = Own("prompt");
    if (value == nullptr)
      return fields_.Bad("prompt", "it is missing; give a text, or a list of tokens and texts");
    const bool several = value->is_array() && !value->empty() &&
                         std::none_of(value->begin(), value->end(),
                                      [](const Json& part) { return part.is_number(); });
    if (!several) return ReadPrompt(*value);
    if (std::ssize(*value) > limits_.max_choices)
      return fields_.Bad("prompt",
                         fmt::format("{} prompts are more than the {} that this server takes at a "
                                     "time; send fewer",
                                     value->size(), limits_.max_choices));
    for (const Json& prompt : *value) ReadPrompt(prompt);
  }

  void ReadGap() {
    LlamaCppGap& gap = call_.gap;
    for (auto [name, text] :
         {std::pair("input_prefix", &gap.prefix), {"input_suffix", &gap.suffix}})
      if (!fields_.Text(Taken(name), *text)) fields_.Bad(name, "it is missing; give a text");
    fields_.Text(Taken("prompt"), gap.prompt);
    const Json* const extra = Own("input_extra");
    if (extra == nullptr) return;
    if (!extra->is_array())
      return fields_.Bad("input_extra", "it is not a list of objects with filename and text");
    for (const Json& chunk : *extra) ReadExtra(chunk);
  }

  // What all paths have. Then the call lacks what OpenAI's reader reads.
  Parsed<LlamaCppCall> Finish() {
    fields_.Switch(Taken("return_tokens"), call_.return_tokens);
    ReadResponseFields();
    ReadBiases();
    ReadSamplers();
    for (const Limit& limit : kIdleLimits)
      if (const Json* const value = Own(limit.name); value != nullptr) ReadIdleLimit(limit, *value);
    bool echo = false;
    if (fields_.Switch(Taken("echo"), echo) && echo)
      Notice("echo: the reply has the prompt in a member of its own");
    fields_.Idle(Taken("sse_ping_interval"));
    if (error_) return Refuse(*std::move(error_));
    return std::move(call_);
  }

  // The body of OpenAI's call. REQUIRES: Finish has returned a call.
  Json Translated(std::size_t n_prompts) {
    Json out;
    for (const auto& [name, value] : body_.members())
      if (!value.is_null() && !Contains(taken_, name))
        out[name] = IsGreedy(name, value) ? Json(0) : value;
    if (std::all_of(std::begin(kLlamaCppLengths), std::end(kLlamaCppLengths),
                    [this](std::string_view name) { return body_.at(name).is_null(); }))
      out["max_tokens"] = -1;
    if (!ids_.empty()) out["logit_bias"] = std::move(ids_);
    out["prompt"] = std::vector<std::string>(n_prompts);  // to be filled in
    return out;
  }

  std::vector<std::string> notices() { return std::move(notices_); }

 private:
  // Fields that the translated body does not have.
  std::string_view Taken(std::string_view name) {
    taken_.push_back(name);
    return name;
  }
  const Json* Own(std::string_view name) { return fields_.Find(Taken(name)); }
  void Notice(std::string text) { notices_.push_back(std::move(text)); }

  // A temperature below 0 is one of 0.
  static bool IsGreedy(std::string_view name, const Json& value) {
    return (name == "temperature" || name == "temp") && value.is_number() && value.number() < 0;
  }

  void ReadPrompt(const Json& value) {
    if (fields_.failed()) return;
    std::vector<Prompt>& parts = call_.prompts.emplace_back();
    const Json* text = &value;
    if (value.is_object()) {
      if (!value.at("multimodal_data").empty())
        return fields_.Bad("prompt", "models here read and write text; leave multimodal_data out",
                           "unsupported_parameter");
      text = &value.at("prompt_string", value);
    }
    if (text->is_string()) {
      parts.emplace_back(text->text());
    } else if (value.is_array() && !value.empty()) {
      for (const Json& part : value) ReadPart(part, parts);
    } else {
      fields_.Bad("prompt",
                  fmt::format("{} is not a prompt; give a text, or a list of tokens and "
                              "texts",
                              value.is_array() ? "an empty list" : JsonFields::Shown(value)));
    }
  }

  void ReadPart(const Json& part, std::vector<Prompt>& parts) {
    if (fields_.failed()) return;
    if (part.is_string()) {
      parts.emplace_back(part.text());
      return;
    }
    if (parts.empty() || !std::holds_alternative<std::vector<std::int32_t>>(parts.back()))
      parts.emplace_back(std::vector<std::int32_t>());
    const Json one = Json::array({part});
    ReadTokenIds("prompt", one, limits_.vocabulary_size, fields_,
                 std::get<std::vector<std::int32_t>>(parts.back()));
  }

  void ReadExtra(const Json& chunk) {
    if (fields_.failed()) return;
    const auto text_of = [&](const char* name, std::string& out) {
      const Json& text = chunk.at(name);
      if (text.is_null()) return chunk.is_object();
      if (text.is_string()) out = text.text();
      return text.is_string();
    };
    auto& [name, text] = call_.gap.extra.emplace_back();
    if (!text_of("filename", name) || !text_of("text", text))
      fields_.Bad("input_extra", fmt::format("{} is not an object with a text, and perhaps a "
                                             "filename; give such objects",
                                             JsonFields::Shown(chunk)));
  }

  void ReadResponseFields() {
    const Json* const list = Own("response_fields");
    if (list == nullptr) return;
    bool good = list->is_array() && list->size() <= kMostResponseFields;
    if (good)
      for (const Json& name : *list) {
        good &= name.is_string();
        if (good) call_.response_fields.push_back(name.text());
      }
    if (!good)
      fields_.Bad("response_fields", fmt::format("it is not a list of at most {} names; give one",
                                                 kMostResponseFields));
  }

  // A list of pairs, or an object. Tokens by their numbers are for OpenAI's reader.
  void ReadBiases() {
    const Json* const biases = Own("logit_bias");
    if (biases == nullptr) return;
    const bool good = EachBias(*biases, [&](const Json& token, const Json& value) {
      ReadBias(biases->is_object() ? TokenOrText(token.text()) : token, value);
    });
    if (!good)
      fields_.Bad(
          "logit_bias",
          "it is not a list of pairs of a token or a text and a bias, nor an object of such; "
          "give one");
  }

  static Json TokenOrText(const std::string& name) {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    return problem == std::errc() && end == name.data() + name.size() ? Json(number) : Json(name);
  }

  void ReadBias(const Json& token, const Json& value) {
    if (fields_.failed() || value.is_null()) return;
    if (!token.is_string()) {
      return ids_.push_back(Json::array({token, value}));
    }
    const double bias = value.is_number() ? value.number() : 1000;
    if (value != false && !(std::abs(bias) <= kMostBias))
      return fields_.Bad(
          "logit_bias",
          fmt::format("{} of {} is neither false nor in [{}, {}]; give such a value",
                      JsonFields::Shown(value), JsonFields::Shown(token), -kMostBias, kMostBias));
    call_.biases.emplace_back(token.text(), value == false ? -std::numeric_limits<float>::infinity()
                                                           : static_cast<float>(bias));
  }

  // The fields of filters that the list lacks do not count.
  void ReadSamplers() {
    const Json* const list = Own("samplers");
    if (list == nullptr) return;
    std::vector<std::string_view> names;
    bool good = list->is_array() && list->size() <= kMostSamplers;
    if (good)
      for (const Json& name : *list) {
        const auto row =
            std::find_if(std::begin(kSamplers), std::end(kSamplers), [&](const Sampler& s) {
              return name == s.name || (s.name == "typ_p" && name == "typical_p");
            });
        good &= row != std::end(kSamplers);
        if (good) names.push_back(row->name);
      }
    if (!good)
      return fields_.Bad("samplers",
                         "it is not a list of names of filters; use penalties, dry, top_k, typ_p, "
                         "top_p, min_p and temperature");
    for (const Sampler& sampler : kSamplers)
      if (!Contains(names, sampler.name))
        for (const std::string_view field : sampler.fields)
          if (!field.empty()) Own(field);
    Notice("samplers: these filters are applied, in the order of this server");
    if (Contains(names, "infill"))
      Notice("samplers: there is no filter infill; it changes nothing");
  }

  void ReadIdleLimit(const Limit& limit, const Json& value) {
    if (!value.is_number())
      return fields_.Bad(limit.name, JsonFields::Shown(value) + " is not a number; give one");
    if (value.number() > 0)
      Notice(fmt::format("{}: {}; it changes nothing", limit.name, limit.advice));
  }

  const Json& body_;
  const ModelLimits& limits_;
  std::optional<ApiError> error_;
  JsonFields fields_;
  LlamaCppCall call_;
  Json ids_ = Json::array();  // of logit_bias
  std::vector<std::string_view> taken_;
  std::vector<std::string> notices_;
};

Parsed<LlamaCppCall> ParseLlamaCpp(std::string_view body, const ModelLimits& limits, bool gap) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  LlamaCppReader reader(*json, limits);
  if (gap)
    reader.ReadGap();
  else
    reader.ReadPrompts();
  auto read = reader.Finish();
  if (!read) return Refuse(std::move(read).error());
  auto call = ReadCompletionCall(reader.Translated(gap ? 1 : read->prompts.size()), limits);
  if (!call) return Refuse(std::move(call).error());
  std::vector<std::string> notices = reader.notices();
  for (std::string& notice : call->notices) notices.push_back(std::move(notice));
  read->generation = *std::move(call);
  read->generation.notices = std::move(notices);
  return std::move(*read);
}

}  // namespace

Parsed<LlamaCppCall> ParseLlamaCppCompletion(std::string_view body, const ModelLimits& limits) {
  return ParseLlamaCpp(body, limits, false);
}

Parsed<LlamaCppCall> ParseLlamaCppInfill(std::string_view body, const ModelLimits& limits) {
  return ParseLlamaCpp(body, limits, true);
}

Parsed<LlamaCppSlotCall> ParseLlamaCppSlot(std::string_view body, bool to_erase) {
  if (to_erase && body.empty()) body = "{}";
  return ReadBody<LlamaCppSlotCall>(body, [&](JsonFields& fields, LlamaCppSlotCall& call) {
    const bool named = fields.Text("filename", call.filename);
    if (!named && !to_erase) fields.Missing({"filename"}, "it is missing; give the name of a file");
    ReadCacheSalt(fields, call.cache_salt);
  });
}

}  // namespace foretoken::server
