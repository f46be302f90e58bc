// SPDX-License-Identifier: Apache-2.0
#include "settings/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/comma_list.h"

namespace foretoken::settings {
namespace {

constexpr std::int32_t kMaxId = std::numeric_limits<std::int32_t>::max();

// True if all of `text` is one number of type T; from_chars also accepts "inf" and "nan".
template <typename T>
bool ParseWhole(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::int64_t> ParseInteger(const std::string& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (!ParseWhole(text, value)) {
    return InvalidArgument(
        fmt::format("'{}' is not a whole number; give one in [{}, {}]", Shown(text), low, high));
  }
  if (value < low || value > high) {
    return InvalidArgument(
        fmt::format("{} is not in [{}, {}]; give a value in that range", Shown(text), low, high));
  }
  return value;
}

Result<std::uint64_t> ParseSeed(const std::string& text) {
  std::uint64_t value = 0;
  if (!ParseWhole(text, value)) {
    return InvalidArgument(fmt::format("'{}' is not a seed; give a whole number in [0, {}]",
                                       Shown(text), std::numeric_limits<std::uint64_t>::max()));
  }
  return value;
}

Result<float> ParseNumber(const std::string& text, float low, float high) {
  float value = 0;
  if (!ParseWhole(text, value) || !std::isfinite(value)) {
    return InvalidArgument(
        fmt::format("'{}' is not a number; give one in [{}, {}]", Shown(text), low, high));
  }
  if (value < low || value > high) {
    return InvalidArgument(
        fmt::format("{} is not in [{}, {}]; give a value in that range", Shown(text), low, high));
  }
  return value;
}

Result<std::vector<std::int32_t>> ParseTokenIds(const std::string& text) {
  std::vector<std::int32_t> ids;
  for (const std::string_view item : CommaItems(text)) {
    std::int32_t id = 0;
    if (!ParseWhole(item, id) || id < 0) {
      return InvalidArgument(
          fmt::format("'{}' is not a token id; give ids with commas, as in 1,2,3", Shown(item)));
    }
    ids.push_back(id);
  }
  return ids;
}

Result<std::pair<std::int32_t, float>> ParseLogitBias(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::int32_t id = 0;
  float value = 0;
  if (equals == std::string::npos || !ParseWhole(std::string_view(text).substr(0, equals), id) ||
      id < 0 || id == kMaxId || !ParseWhole(std::string_view(text).substr(equals + 1), value) ||
      std::isnan(value) || value == std::numeric_limits<float>::infinity()) {
    return InvalidArgument(
        fmt::format("'{}' is not ID=VALUE; write a token id and a number or -inf, as in "
                    "15043=-1.5",
                    Shown(text)));
  }
  return std::pair<std::int32_t, float>(id, value);
}

}  // namespace foretoken::settings
