// SPDX-License-Identifier: Apache-2.0
// capi/option_values.h: texts of options as values. An error says why a text cannot be read; the ranges
// of numbers are checked where they are used, by the engine.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/comma_list.h"
#include "foretoken/options.h"
#include "foretoken/request.h"
#include "foretoken/result.h"

namespace foretoken::capi {

[[nodiscard]] inline Status Unreadable(std::string_view text, const char* wanted) {
  return InvalidArgument("'" + Shown(text) + "' is not " + wanted);
}

inline Status ReadValue(std::string_view text, std::string& value) {
  value = text;
  return {};
}

inline Status ReadValue(std::string_view text, bool& value) {
  for (const std::string_view yes : {"true", "on", "yes", "1"})
    if (text == yes) return value = true, Status();
  for (const std::string_view no : {"false", "off", "no", "0"})
    if (text == no) return value = false, Status();
  return Unreadable(text, "a switch; give true or false");
}

// Whole numbers, and finite ones with a point.
template <typename T>
requires std::is_arithmetic_v<T> Status ReadValue(std::string_view text, T& value) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc::result_out_of_range)
    return Unreadable(text, "in the range of its type; give a number nearer to 0");
  if (read.ec != std::errc() || read.ptr != end)
    return Unreadable(text, std::is_integral_v<T> ? "a whole number; give digits"
                                                  : "a number; give it in decimal");
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(number)) return Unreadable(text, "finite; give a number");
  value = number;
  return {};
}

// Numbers with commas; "" is none.
inline Status ReadValue(std::string_view text, std::vector<std::int32_t>& value) {
  std::vector<std::int32_t> numbers;
  if (!text.empty())
    for (const std::string_view item : CommaItems(text))
      FORETOKEN_CHECK_OK(ReadValue(item, numbers.emplace_back()));
  value = std::move(numbers);
  return {};
}

// Adds a text.
inline Status ReadValue(std::string_view text, std::vector<std::string>& value) {
  value.emplace_back(text);
  return {};
}

// "15043=-1.5,7=-inf".
inline Status ReadValue(std::string_view text, std::map<std::int32_t, float>& value) {
  std::map<std::int32_t, float> biases;
  for (const std::string_view item : CommaItems(text)) {
    if (text.empty()) break;
    const std::size_t equals = item.find('=');
    if (equals == item.npos) return Unreadable(item, "a token and its bias; give 15043=-1.5");
    std::int32_t token = 0;
    FORETOKEN_CHECK_OK(ReadValue(item.substr(0, equals), token));
    const std::string_view bias = item.substr(equals + 1);
    float& of_token = biases[token];
    of_token = -std::numeric_limits<float>::infinity();
    if (bias != "-inf") FORETOKEN_CHECK_OK(ReadValue(bias, of_token));
  }
  value = std::move(biases);
  return {};
}

inline Status ReadValue(std::string_view text, CacheType& value) {
  FORETOKEN_TRY(value, ParseCacheType(text));
  return {};
}

inline Status ReadValue(std::string_view text, ControlTexts& value) {
  if (text == "none") return value = ControlTexts::kNone, Status();
  if (text == "plain") return value = ControlTexts::kPlain, Status();
  return Unreadable(text, "a way to write control tokens; choose none or plain");
}

inline Status ReadValue(std::string_view text, Pooling& value) {
  for (const Pooling pooling :
       {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast, Pooling::kRank})
    if (text == Name(pooling)) return value = pooling, Status();
  return Unreadable(text, "a pooling; choose none, mean, cls, last or rank");
}

// Behind all others, which it must see.
template <typename T>
Status ReadValue(std::string_view text, std::optional<T>& value) {
  T read{};
  FORETOKEN_CHECK_OK(ReadValue(text, read));
  value = std::move(read);
  return {};
}

}  // namespace foretoken::capi
