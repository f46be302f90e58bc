// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/arithmetic.h: the operators of numbers, texts and lists, as in Python.
#pragma once

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};
std::string_view SignOf(Operator op);

// Errors: types that do not fit, division by zero, an integer beyond 64 bits.
[[nodiscard]] Result<Value> Apply(Budget& budget, Operator op, const Value& a, const Value& b);
[[nodiscard]] Result<Value> Negated(const Value& value);
[[nodiscard]] Result<bool> Holds(Budget& budget, Operator op, const Value& a, const Value& b);

// The text of markup: & < > ' " as entities.
Characters Escaped(CharactersView text);

}  // namespace foretoken::text::jinja
