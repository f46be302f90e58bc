// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/json_text.h: JSON from values and back, as Python's module json has it.
#pragma once

#include <optional>

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<Characters> indent;  // of one level; without: one line
  Characters item_separator = U", ";
  Characters key_separator = U": ";
  bool sort_keys = false;
};

// As json.dumps(). Error: a value or a key that JSON does not have.
[[nodiscard]] Result<Characters> ToJson(Budget& budget, const Value& value, const JsonStyle& style);

// As json.loads(). Texts that clients gave are marked as from the conversation. Errors: not JSON,
// more than 90 lists and objects inside each other, an integer beyond 64 bits.
[[nodiscard]] Result<Value> FromJson(Budget& budget, std::string_view json, bool from_input);

}  // namespace foretoken::text::jinja
