// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/attributes.h: value.name, value[key] and value[first:last:step].
#pragma once

#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

// Undefined if there is no such attribute or element. Errors: the value itself is undefined, or the
// attribute would change the value.
[[nodiscard]] Result<Value> AttributeOf(Environment& environment, const Value& value,
                                        std::string_view name);
[[nodiscard]] Result<Value> ItemOf(Environment& environment, const Value& value, const Value& key);
// Parts that are left out are None.
[[nodiscard]] Result<Value> SliceOf(Environment& environment, const Value& value,
                                    const Value& first, const Value& last, const Value& step);
// "a.b.0" of filters: one ItemOf after the other. An integer is one step.
[[nodiscard]] Result<Value> PathOf(Environment& environment, Value value, const Value& path);

}  // namespace foretoken::text::jinja
