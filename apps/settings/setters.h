// SPDX-License-Identifier: Apache-2.0
// settings/setters.h: functions for the values of flag rows. `target` must outlive the row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/comma_list.h"
#include "foretoken/option_keys.h"
#include "settings/values.h"

namespace foretoken::settings {

using Setter = std::function<Status(const std::string&)>;

// Stores into a string or an optional<string>.
template <typename T>
Setter StoreText(T& target) {
  return [&target](const std::string& text) -> Status {
    target = text;
    return {};
  };
}

// Stores a path. An empty one, such as an unset variable in a script, is refused.
inline Setter StorePath(std::string& target) {
  return [&target](const std::string& text) -> Status {
    if (text.empty()) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the path is empty; name a file or leave the flag out");
    }
    target = text;
    return {};
  };
}

// Stores into an int or an optional<int>.
template <typename T>
Setter StoreInteger(T& target, std::int64_t low, std::int64_t high) {
  return [&target, low, high](const std::string& text) -> Status {
    FORETOKEN_TRY(const std::int64_t value, ParseInteger(text, low, high));
    target = static_cast<int>(value);
    return {};
  };
}

// Stores a number of tokens into an int; -1, llama.cpp's "no limit", is more than any context.
inline Setter StoreLength(int& target, int low) {
  return [&target, low](const std::string& text) -> Status {
    if (text == "-1") {
      target = kMaxTextTokens;
      return {};
    }
    auto value = ParseInteger(text, low, kMaxTextTokens);
    if (!value)
      return Fail(value.error().code, value.error().message + ", or -1 for as many as fit");
    target = static_cast<int>(*value);
    return {};
  };
}

// Stores into a float or an optional<float>.
template <typename T>
Setter StoreNumber(T& target, float low, float high) {
  return [&target, low, high](const std::string& text) -> Status {
    FORETOKEN_TRY(target, ParseNumber(text, low, high));
    return {};
  };
}

// Stores a number of sampling into an int or a float, or an optional one.
template <typename T>
Setter StoreSampling(std::string_view name, T& target) {
  const auto [least, most] = FlagRange(name);
  if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>)
    return StoreInteger(target, static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
  else
    return StoreNumber(target, static_cast<float>(least), static_cast<float>(most));
}

// "4,1,2": sorted, each once.
inline Setter StoreList(std::vector<int>& target, int low, int high) {
  return [&target, low, high](const std::string& text) -> Status {
    target.clear();
    for (const std::string_view item : CommaItems(text)) {
      FORETOKEN_TRY(const auto value, ParseInteger(std::string(item), low, high));
      target.push_back(static_cast<int>(value));
    }
    std::sort(target.begin(), target.end());
    target.erase(std::unique(target.begin(), target.end()), target.end());
    return {};
  };
}

inline Setter StoreSwitch(bool& target) {
  return [&target](const std::string& text) -> Status {
    if (text != "on" && text != "off")
      return Fail(ErrorCode::kInvalidArgument,
                  "'" + text + "' is neither on nor off; give one of them");
    target = text == "on";
    return {};
  };
}

inline Setter StoreTrue(bool& target) {
  return [&target](const std::string&) -> Status {
    target = true;
    return {};
  };
}

}  // namespace foretoken::settings
