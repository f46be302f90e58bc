// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/date_text.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace foretoken::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

std::string_view DayOf(const std::tm& date) {
  return kDays[static_cast<std::size_t>(date.tm_wday) % 7];
}

std::string_view MonthOf(const std::tm& date) {
  return kMonths[static_cast<std::size_t>(date.tm_mon) % 12];
}

struct Number {
  int value;
  int width;
  char fill = '0';
};

std::optional<Number> NumberOf(char32_t letter, const std::tm& date) {
  const int hour = date.tm_hour % 12 == 0 ? 12 : date.tm_hour % 12;
  switch (letter) {
    case U'd':
      return Number{date.tm_mday, 2};
    case U'e':
      return Number{date.tm_mday, 2, ' '};
    case U'm':
      return Number{date.tm_mon + 1, 2};
    case U'y':
      return Number{date.tm_year % 100, 2};
    case U'Y':
      return Number{date.tm_year + 1900, 1};
    case U'H':
      return Number{date.tm_hour, 2};
    case U'I':
      return Number{hour, 2};
    case U'M':
      return Number{date.tm_min, 2};
    case U'S':
      return Number{date.tm_sec, 2};
    case U'j':
      return Number{date.tm_yday + 1, 3};
    case U'w':
      return Number{date.tm_wday, 1};
    case U'u':
      return Number{date.tm_wday == 0 ? 7 : date.tm_wday, 1};
    case U'U':
      return Number{(date.tm_yday + 7 - date.tm_wday) / 7, 2};
    case U'W':
      return Number{(date.tm_yday + 7 - (date.tm_wday + 6) % 7) / 7, 2};
    default:
      return std::nullopt;
  }
}

std::optional<std::string> WordOf(char32_t letter, const std::tm& date) {
  switch (letter) {
    case U'a':
      return std::string(DayOf(date).substr(0, 3));
    case U'A':
      return std::string(DayOf(date));
    case U'b':
    case U'h':
      return std::string(MonthOf(date).substr(0, 3));
    case U'B':
      return std::string(MonthOf(date));
    case U'p':
      return date.tm_hour < 12 ? "AM" : "PM";
    case U'n':
      return "\n";
    case U't':
      return "\t";
    case U'%':
      return "%";
    default:
      return std::nullopt;
  }
}

// What a letter for a whole date or time means in the C locale.
CharactersView FormatOf(char32_t letter) {
  switch (letter) {
    case U'F':
      return U"%Y-%m-%d";
    case U'T':
    case U'X':
      return U"%H:%M:%S";
    case U'D':
    case U'x':
      return U"%m/%d/%y";
    case U'R':
      return U"%H:%M";
    case U'c':
      return U"%a %b %e %H:%M:%S %Y";
    default:
      return {};
  }
}

}  // namespace

Characters DateText(CharactersView format, const std::tm& date) {
  Characters out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (CodeOf(format[i]) != U'%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool plain = CodeOf(format[i + 1]) == U'-' && i + 2 < format.size();
    const char32_t letter = CodeOf(format[i + (plain ? 2 : 1)]);
    if (const auto number = NumberOf(letter, date)) {
      const std::string digits = std::to_string(number->value);
      const auto width = static_cast<std::size_t>(number->width);
      if (!plain && digits.size() < width)
        out += Characters(width - digits.size(), static_cast<char32_t>(number->fill));
      out += FromUtf8(digits);
    } else if (const auto word = WordOf(letter, date)) {
      out += FromUtf8(*word);
    } else if (const CharactersView whole = FormatOf(letter); !whole.empty()) {
      out += DateText(whole, date);
    } else {
      out += format[i];
      continue;
    }
    i += plain ? 2 : 1;
  }
  return out;
}

}  // namespace foretoken::text::jinja
