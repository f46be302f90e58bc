// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/number_format.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace foretoken::text::jinja {
namespace {

std::string Grouped(std::string digits, char group) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, group);
  return digits;
}

std::string IntegerDigits(const Place& place, std::uint64_t magnitude) {
  switch (place.type) {
    case 'x':
      return fmt::format("{}{:x}", place.alternate ? "0x" : "", magnitude);
    case 'X':
      return fmt::format("{}{:X}", place.alternate ? "0X" : "", magnitude);
    case 'o':
      return fmt::format("{}{:o}", place.alternate ? "0o" : "", magnitude);
    case 'b':
      return fmt::format("{}{:b}", place.alternate ? "0b" : "", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

std::string FloatDigits(const Place& place, double magnitude) {
  if (std::isnan(magnitude) || std::isinf(magnitude)) {
    const bool capital = place.type == 'F' || place.type == 'E' || place.type == 'G';
    return std::isnan(magnitude) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf");
  }
  const int precision = static_cast<int>(place.precision < 0 ? 6 : place.precision);
  char type = place.type == 'n' || place.type == 0 ? 'g' : place.type;
  if (type == '%') type = 'f', magnitude *= 100;
  const char form[] = {'%', '.', '*', type, 0};
  std::string digits(700, 0);
  const int size = std::snprintf(digits.data(), digits.size(), form, precision, magnitude);
  digits.resize(static_cast<std::size_t>(size));
  if (place.type == '%') digits += '%';
  return digits;
}

}  // namespace

Result<std::string> NumberDigits(const Place& place, const Value& number) {
  constexpr std::string_view kIntegers = "dbcoxX", kFloats = "eEfFgG%";
  const bool is_float_type = kFloats.find(place.type) != std::string_view::npos && place.type != 0;
  std::string digits;
  bool negative = false;
  if (number.integer() && !is_float_type) {
    const std::int64_t value = *number.integer();
    negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    digits = IntegerDigits(place, negative ? 0 - bits : bits);
  } else {
    if (kIntegers.find(place.type) != std::string_view::npos && place.type != 0)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("Unknown format code '{}' for object of type 'float'", place.type));
    const double value = number.number();
    negative = std::signbit(value) && !std::isnan(value);
    digits = place.type == 0 && place.precision < 0 ? FloatText(std::abs(value))
                                                    : FloatDigits(place, std::abs(value));
  }
  if (place.group != 0) digits = Grouped(std::move(digits), place.group);
  if (negative) return '-' + digits;
  return place.sign == '-' ? digits : place.sign + digits;
}

Characters Padded(const Place& place, CharactersView text, bool numeric) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(0, place.width));
  if (text.size() >= width) return Characters(text);
  const std::size_t pad = width - text.size();
  const char align = place.align != 0 ? place.align : numeric ? '>' : '<';
  if (align == '=') {
    std::size_t sign = !text.empty() && (text[0] == U'-' || text[0] == U'+' || text[0] == U' ');
    return Characters(text.substr(0, sign)) + Characters(pad, place.fill) +
           Characters(text.substr(sign));
  }
  const std::size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
  return Characters(left, place.fill) + Characters(text) + Characters(pad - left, place.fill);
}

}  // namespace foretoken::text::jinja
