// SPDX-License-Identifier: Apache-2.0
// base/comma_list.h: lists in one text, with commas between the items.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace foretoken {

// What stands between the commas, without the spaces around it. "" is one empty item, and "a,"
// ends with one.
inline std::vector<std::string_view> CommaItems(std::string_view text) {
  std::vector<std::string_view> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view item = text.substr(at, end - at);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    items.push_back(item);
    at = end + 1;
  }
  return items;
}

}  // namespace foretoken
