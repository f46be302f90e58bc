// SPDX-License-Identifier: Apache-2.0
#include "server/api/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "foretoken/option_keys.h"
#include "server/api/body_limits.h"

namespace foretoken::server {
namespace {

constexpr int kRepeatWindow = 64;  // llama.cpp's, where repeat_penalty comes without one

JsonFields::Names NamesOf(const SamplingKey& key) {
  if (key.field.other_name.empty()) return key.field.name;
  return {key.field.name, key.field.other_name};
}

// repetition_penalty counts the whole text, as in vLLM and transformers; llama.cpp's name for it
// counts the last tokens.
void ReadNumbers(JsonFields& fields, SamplingParameters& s) {
  if (fields.Has("repeat_penalty") && !fields.Has("repetition_penalty"))
    s.repetition_window = kRepeatWindow;
  for (const SamplingKey& key : SamplingKeys()) {
    const auto [least, most] = key.field_range();
    key.Visit(s, [&](auto& number) {
      if constexpr (std::is_same_v<decltype(number), int&>)
        fields.Integer(NamesOf(key), static_cast<std::int64_t>(least),
                       static_cast<std::int64_t>(most), number);
      else
        fields.Number(NamesOf(key), least, most, number);
    });
  }
  if (s.repetition_window == 0) s.repetition_penalty = 1;
}

// llama.cpp's field and default.
void ReadBreakers(JsonFields& fields, const DryPenalty& dry, DryBreakers& breakers) {
  breakers = {.texts = {"\n", ":", "\"", "*"}};
  if (const Json* const list = fields.Find("dry_sequence_breakers")) {
    breakers = {.of_client = true};
    bool good = list->is_array() && list->size() <= kMostBreakers;
    if (good)
      for (const Json& text : *list) {
        good &= text.is_string() && text.text().size() <= kMostBreakerBytes;
        if (good && text != "") breakers.texts.push_back(text.text());
      }
    if (!good)
      fields.Bad("dry_sequence_breakers",
                 fmt::format("it is not a list of at most {} texts of at most {} bytes; give one",
                             kMostBreakers, kMostBreakerBytes));
  }
  if (dry.multiplier == 0) breakers = {};
}

// A token's id, as the name of a member or as a number.
std::optional<std::int32_t> IdOf(const Json& value, int vocabulary_size) {
  std::optional<std::int64_t> id = JsonFields::WholeNumber(value);
  if (value.is_string()) {
    const auto& text = value.text();
    std::int64_t number = -1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc() && end == text.data() + text.size()) id = number;
  }
  if (!id || *id < 0 || *id >= vocabulary_size) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

// A bias of false bans the token.
void ReadOneBias(const Json& key, const Json& value, int vocabulary_size, JsonFields& fields,
                 SamplingParameters& s) {
  const auto id = IdOf(key, vocabulary_size);
  if (!id)
    return fields.Bad("logit_bias", fmt::format("{} is not a token; use ids from 0 to {}",
                                                JsonFields::Shown(key), vocabulary_size - 1));
  if (value.is_null()) return;
  if (value == false) {
    s.logit_bias[*id] = -std::numeric_limits<float>::infinity();
    return;
  }
  const double bias = value.is_number() ? value.number() : 1000;
  if (!(std::abs(bias) <= kMostBias))
    return fields.Bad("logit_bias",
                      fmt::format("{} of token {} is not in [{}, {}]; give a number in that range",
                                  JsonFields::Shown(value), *id, -kMostBias, kMostBias));
  s.logit_bias[*id] = static_cast<float>(bias);
}

void ReadBias(JsonFields& fields, int vocabulary_size, SamplingParameters& s) {
  const Json* const biases = fields.Find("logit_bias");
  if (biases == nullptr) return;
  const bool good = EachBias(*biases, [&](const Json& key, const Json& value) {
    ReadOneBias(key, value, vocabulary_size, fields, s);
  });
  if (!good)
    fields.Bad("logit_bias",
               "it is not an object of ids and numbers, nor a list of such pairs; give one");
}

}  // namespace

bool ReadTokenIds(std::string_view name, const Json& list, int vocabulary_size, JsonFields& fields,
                  std::vector<std::int32_t>& out) {
  for (const Json& value : list) {
    const auto id = JsonFields::WholeNumber(value);
    if (!id || *id < 0 || *id >= vocabulary_size) {
      fields.Bad(name, fmt::format("{} is not a token; use ids from 0 to {}",
                                   JsonFields::Shown(value), vocabulary_size - 1));
      return false;
    }
    out.push_back(static_cast<std::int32_t>(*id));
  }
  return true;
}

void ReadSamplingFields(JsonFields& fields, int vocabulary_size, SamplingParameters& sampling,
                        DryBreakers& dry_breakers) {
  ReadNumbers(fields, sampling);
  ReadBreakers(fields, sampling.dry, dry_breakers);
  ReadBias(fields, vocabulary_size, sampling);
}

}  // namespace foretoken::server
