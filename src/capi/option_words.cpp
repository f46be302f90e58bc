// SPDX-License-Identifier: Apache-2.0
#include "capi/option_words.h"

#include <array>
#include <string>
#include <string_view>

namespace foretoken::capi {
namespace {

struct Renamed {
  std::string_view member, key;
};

// In this order: what is left of a member's name is its key.
constexpr std::array kInMessages = {Renamed{"SpeculativeOptions::method", "speculative_method"},
                                    Renamed{"SpeculativeOptions::", ""},
                                    Renamed{"EngineOptions::", ""}, Renamed{"ChatOptions::", ""}};

void Replace(std::string& text, const Renamed& name) {
  for (std::size_t at = 0; (at = text.find(name.member, at)) != std::string::npos;
       at += name.key.size())
    text.replace(at, name.member.size(), name.key);
}

std::string KeyOf(const std::string& field) {
  if (field == "verify") return "rejection_sampling_strategy";
  return field.starts_with("dry.") ? "dry_" + field.substr(4) : field;  // as in option_keys.h
}

}  // namespace

Error InKeys(Error why) {
  for (const Renamed& name : kInMessages) Replace(why.message, name);
  const std::string key = KeyOf(why.field);
  if (key == why.field) return why;
  if (why.message.starts_with(why.field + ":")) why.message.replace(0, why.field.size(), key);
  why.field = key;
  return why;
}

}  // namespace foretoken::capi
