// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/loop.h: the variable `loop` of a for statement.
#pragma once

#include <cstdint>
#include <optional>

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct ForStatement;
struct Scope;

struct Loop {
  Values items;
  int depth = 1;  // as a value that contains its items
  std::int64_t index0 = -1;
  int depth0 = 0;
  // Set for recursive loops: what loop(...) renders again, and where.
  const ForStatement* statement = nullptr;
  std::shared_ptr<Scope> scope;
  std::optional<Values> last_changed;  // the arguments of the last loop.changed()

  std::int64_t length() const { return static_cast<std::int64_t>(items.size()); }
  bool last() const { return index0 + 1 >= length(); }
  // The element at a distance from the present one; undefined behind the ends.
  Value Neighbour(std::int64_t distance) const {
    const std::int64_t at = index0 + distance;
    if (at < 0 || at >= length())
      return Value::Missing(distance < 0 ? "there is no previous item" : "there is no next item");
    return items[static_cast<std::size_t>(at)];
  }
};

}  // namespace foretoken::text::jinja
