// SPDX-License-Identifier: Apache-2.0
#include "base/quoted_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace foretoken {

std::string QuotedJson(std::string_view text) {
  constexpr std::pair<char, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                              {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
  std::string quoted = "\"";
  for (const char c : text) {
    const auto named = std::find_if(std::begin(kShort), std::end(kShort),
                                    [c](const auto& escape) { return escape.first == c; });
    if (named != std::end(kShort))
      quoted += {'\\', named->second};
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace foretoken
