// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/comparison.h: equality and order of values, as in Python.
#pragma once

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

// The time is bounded by the lesser of the weights; callers spend it (SpendComparison).
bool AreEqual(const Value& a, const Value& b);
// Equal as elements and keys, where Python takes an object for equal to itself: NaN is, too.
bool AreSame(const Value& a, const Value& b);
[[nodiscard]] Status SpendComparison(Budget& budget, const Value& a, const Value& b);
// -1, 0 or 1; 2 where a number is not one (NaN). Error: the types have no order.
[[nodiscard]] Result<int> Compare(const Value& a, const Value& b, std::string_view sign = "<");
// `value in container`.
[[nodiscard]] Result<bool> Contains(Budget& budget, const Value& container, const Value& value);
// As sorted(): stable. `keys` has as many elements as `items`.
[[nodiscard]] Status SortBy(Budget& budget, const Values& keys, bool reverse, Values& items);

}  // namespace foretoken::text::jinja
