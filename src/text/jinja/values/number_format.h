// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/number_format.h: how one value is written into its place.
#pragma once

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct Place {
  char32_t fill = U' ';
  char align = 0;  // < > ^ =; 0: as the type has it
  char sign = '-';
  char group = 0;  // , or _ between thousands
  bool alternate = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

inline constexpr std::int64_t kMostWidth = 1 << 20, kMostPrecision = 300;

// The digits of a number in the place's type, with sign, without padding. Error: a type that the
// number does not have.
[[nodiscard]] Result<std::string> NumberDigits(const Place& place, const Value& number);
// The text, padded. `numeric`: align right unless the place says otherwise.
Characters Padded(const Place& place, CharactersView text, bool numeric);

}  // namespace foretoken::text::jinja
