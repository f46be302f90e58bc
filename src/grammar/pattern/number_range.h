// SPDX-License-Identifier: Apache-2.0
// grammar/pattern/number_range.h: the numbers between two bounds, digit by digit, as parts of a grammar.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/pattern/gbnf_writer.h"

namespace foretoken::grammar {

// A number as its digits.
struct Decimal {
  bool negative = false;      // never of 0
  std::string whole = "0";    // without leading zeros
  std::string fraction = {};  // without trailing zeros

  // From a JSON number. Empty: more than kMaxDigits on a side of the point.
  static constexpr std::size_t kMaxDigits = 32;
  static std::optional<Decimal> Parse(std::string_view number);
  static int Compare(const Decimal& a, const Decimal& b);  // <0, 0, >0
  bool IsZero() const { return whole == "0" && fraction.empty(); }
};

struct Bound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<Bound> low, high;

  // Keeps the tighter bound.
  void RaiseLow(const Bound& bound);
  void LowerHigh(const Bound& bound);
  void Narrow(const NumberRange& other);
  bool IsEmpty() const;  // of reals
};

// Digits of a number without bounds; there are more only for bounds that have more.
constexpr std::size_t kUsualDigits = 16;
// Bounds of numbers with fractions have at most this many digits together, so that rounding to a
// double cannot move a number over its bound.
constexpr std::size_t kExactDigits = 15;

// AnyOf of nothing if there is no such number.
GbnfWriter::Part WholeNumbers(const NumberRange& range, GbnfWriter& writer);
// Without exponents. REQUIRES: bounds of at most kExactDigits.
GbnfWriter::Part RealNumbers(const NumberRange& range, GbnfWriter& writer);

}  // namespace foretoken::grammar
