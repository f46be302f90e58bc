// SPDX-License-Identifier: Apache-2.0
// base/control_text.h: how a control token stands in a text.
//
// A control token is no text. Where one must be seen among text, it stands between two bytes that no
// text in UTF-8 has, so text that merely spells it is something else.
#pragma once

#include <string>
#include <string_view>

namespace foretoken {

inline constexpr char kControlBegin = '\xFF', kControlEnd = '\xFE';

inline std::string ControlText(std::string_view token) {
  return kControlBegin + std::string(token) + kControlEnd;
}

}  // namespace foretoken
