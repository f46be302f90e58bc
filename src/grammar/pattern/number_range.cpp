// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern/number_range.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace foretoken::grammar {
namespace {

using Part = GbnfWriter::Part;

Part Digit(char first, char last, GbnfWriter& writer) {
  if (first > last) return writer.AnyOf({});
  if (first == last) return writer.Text(std::string(1, first));
  return writer.OneOf(
      CharacterClass({{static_cast<char32_t>(first), static_cast<char32_t>(last)}}));
}

Part Digits(std::size_t least, std::size_t most, GbnfWriter& writer) {
  return writer.Repeat(Digit('0', '9', writer), static_cast<int>(least), static_cast<int>(most));
}

char Up(char digit) {
  return static_cast<char>(digit + 1);
}
char Down(char digit) {
  return static_cast<char>(digit - 1);
}

// Digits below or above those of a bound, as many as the bound has.
class SameLength {
 public:
  SameLength(std::string_view low, std::string_view high, GbnfWriter& writer)
      : low_(low), high_(high), writer_(writer) {}

  // The part from digit i on; at_low, at_high: the digits before it equal the bound's.
  Part From(std::size_t i, bool at_low, bool at_high) {
    const std::size_t left = low_.size() - i;
    if (left == 0) return writer_.Text("");
    at_low = at_low && low_.find_first_not_of('0', i) != low_.npos;
    at_high = at_high && high_.find_first_not_of('9', i) != high_.npos;
    if (!at_low && !at_high) return Digits(left, left, writer_);
    const char low = at_low ? low_[i] : '0', high = at_high ? high_[i] : '9';
    if (at_low && at_high && low == high) return Step(low, From(i + 1, true, true));
    std::vector<Part> ways;
    if (at_low) ways.push_back(Step(low, From(i + 1, true, false)));
    const char first = at_low ? Up(low) : low, last = at_high ? Down(high) : high;
    if (first <= last)
      ways.push_back(
          writer_.Sequence({Digit(first, last, writer_), Digits(left - 1, left - 1, writer_)}));
    if (at_high) ways.push_back(Step(high, From(i + 1, false, true)));
    return writer_.AnyOf(ways);
  }

 private:
  Part Step(char digit, Part rest) {
    return writer_.Sequence({writer_.Text(std::string(1, digit)), rest});
  }

  std::string_view low_, high_;
  GbnfWriter& writer_;
};

// low <= high, both without leading zeros.
Part Naturals(const std::string& low, const std::string& high, GbnfWriter& writer) {
  if (low.size() == high.size()) return SameLength(low, high, writer).From(0, true, true);
  std::vector<Part> ways;
  const std::string nines(low.size(), '9');
  if (low == "0") ways.push_back(writer.Text("0"));
  ways.push_back(SameLength(low == "0" ? "1" : low, nines, writer).From(0, true, true));
  // Lengths between: any digits.
  if (high.size() - low.size() > 1)
    ways.push_back(
        writer.Sequence({Digit('1', '9', writer), Digits(low.size(), high.size() - 2, writer)}));
  const std::string power = "1" + std::string(high.size() - 1, '0');
  ways.push_back(SameLength(power, high, writer).From(0, true, true));
  return writer.AnyOf(ways);
}

std::string Successor(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') return digits[i] = Up(digits[i]), digits;
    digits[i] = '0';
  }
  return "1" + digits;
}

// REQUIRES: not 0.
std::string Predecessor(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '0') {
      digits[i] = Down(digits[i]);
      break;
    }
    digits[i] = '9';
  }
  if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
  return digits;
}

bool Less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// The digits behind the point, with the point, of numbers whose whole part equals a bound's.
class Fractions {
 public:
  // Null: no bound on that side.
  Fractions(const Bound* low, const Bound* high, std::size_t most, GbnfWriter& writer)
      : low_(low), high_(high), most_(most), writer_(writer) {}

  Part All() {
    const Ways ways = From(0, low_ != nullptr, high_ != nullptr);
    if (ways.more < 0) return ways.can_end ? writer_.Text("") : writer_.AnyOf({});
    const Part more = writer_.Sequence({writer_.Text("."), ways.more});
    return ways.can_end ? writer_.Optional(more) : more;
  }

 private:
  struct Ways {
    bool can_end = false;
    Part more = -1;
  };

  static char DigitOf(const Bound& bound, std::size_t i) {
    return i < bound.value.fraction.size() ? bound.value.fraction[i] : '0';
  }
  static bool IsOver(const Bound& bound, std::size_t i) { return i >= bound.value.fraction.size(); }

  // After i digits; at_low, at_high: they equal the bound's. Beyond the bound's digits are zeros.
  Ways From(std::size_t i, bool at_low, bool at_high) {
    if (at_low && IsOver(*low_, i) && !low_->exclusive) at_low = false;
    Ways ways;
    ways.can_end = !at_low && !(at_high && IsOver(*high_, i) && high_->exclusive);
    if (i >= most_) return ways;
    if (at_high && IsOver(*high_, i)) {
      if (ways.can_end)
        ways.more = writer_.Repeat(writer_.Text("0"), 1, static_cast<int>(most_ - i));
      return ways;
    }
    if (!at_low && !at_high) return ways.more = Digits(1, most_ - i, writer_), ways;
    const char low = at_low ? DigitOf(*low_, i) : '0', high = at_high ? DigitOf(*high_, i) : '9';
    std::vector<Part> all;
    if (at_low || (at_high && low == high))
      Add(low, From(i + 1, at_low, at_high && low == high), all);
    const char first = at_low ? Up(low) : low, last = at_high ? Down(high) : high;
    if (first <= last)
      all.push_back(
          writer_.Sequence({Digit(first, last, writer_), Digits(0, most_ - i - 1, writer_)}));
    if (at_high && high > low) Add(high, From(i + 1, false, true), all);
    if (!all.empty()) ways.more = writer_.AnyOf(all);
    return ways;
  }

  void Add(char digit, const Ways& rest, std::vector<Part>& all) {
    const Part here = writer_.Text(std::string(1, digit));
    if (rest.more < 0) {
      if (rest.can_end) all.push_back(here);
      return;
    }
    all.push_back(writer_.Sequence({here, rest.can_end ? writer_.Optional(rest.more) : rest.more}));
  }

  const Bound* low_;
  const Bound* high_;
  const std::size_t most_;
  GbnfWriter& writer_;
};

// Magnitudes: bounds that are not negative.
Part Reals(const Bound& low, const Bound& high, std::size_t n_fraction, GbnfWriter& writer) {
  const std::string &a = low.value.whole, &b = high.value.whole;
  const auto with = [&](Part whole, const Bound* from, const Bound* to) {
    return writer.Sequence({whole, Fractions(from, to, n_fraction, writer).All()});
  };
  if (a == b) return with(writer.Text(a), &low, &high);
  std::vector<Part> ways = {with(writer.Text(a), &low, nullptr)};
  const std::string first = Successor(a), last = Predecessor(b);
  if (!Less(last, first)) ways.push_back(with(Naturals(first, last, writer), nullptr, nullptr));
  ways.push_back(with(writer.Text(b), nullptr, &high));
  return writer.AnyOf(ways);
}

bool IsAbove(const Bound& low, const Bound& high) {
  const int order = Decimal::Compare(low.value, high.value);
  return order > 0 || (order == 0 && (low.exclusive || high.exclusive));
}

Bound Magnitude(Bound bound) {
  bound.value.negative = false;
  return bound;
}

// A bound of as many nines as numbers have without this bound.
Bound Endless(const std::optional<Bound>& other, bool negative) {
  const std::size_t n = std::max(kUsualDigits, other ? other->value.whole.size() : 0);
  return {{.negative = negative, .whole = std::string(n, '9')}};
}

// Negative numbers behind a minus, and the others; reals(low, high) writes magnitudes.
template <typename Write>
Part Signed(const Bound& low, const Bound& high, GbnfWriter& writer, const Write& write) {
  const Bound zero;
  std::vector<Part> ways;
  if (low.value.negative) {
    // No -0 if 0 is there too.
    const Bound nearest = high.value.negative ? Magnitude(high) : Bound{.exclusive = true};
    ways.push_back(writer.Sequence({writer.Text("-"), write(nearest, Magnitude(low))}));
  }
  if (!high.value.negative) {
    const Bound& from = low.value.negative ? zero : low;
    if (!IsAbove(from, high)) ways.push_back(write(from, high));
  }
  return writer.AnyOf(ways);
}

}  // namespace

std::optional<Decimal> Decimal::Parse(std::string_view number) {
  Decimal decimal;
  decimal.negative = number.starts_with('-');
  if (decimal.negative) number.remove_prefix(1);
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  int exponent = 0;
  if (e < number.size()) {
    const std::string_view digits = number.substr(e + (number[e + 1] == '+' ? 2 : 1));
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (problem != std::errc() || exponent < -1000 || exponent > 1000) return std::nullopt;
  }
  const std::size_t point = std::min(number.find('.'), e);
  std::string digits(number.substr(0, point));
  if (point < e) digits += number.substr(point + 1, e - point - 1);
  // The position of the point among the digits.
  std::ptrdiff_t at = static_cast<std::ptrdiff_t>(point) + exponent;
  if (at < 0) digits.insert(0, static_cast<std::size_t>(-at), '0'), at = 0;
  if (at > std::ssize(digits)) digits.append(static_cast<std::size_t>(at) - digits.size(), '0');
  decimal.whole = digits.substr(0, static_cast<std::size_t>(at));
  decimal.fraction = digits.substr(static_cast<std::size_t>(at));
  decimal.whole.erase(0, std::min(decimal.whole.find_first_not_of('0'), decimal.whole.size()));
  if (decimal.whole.empty()) decimal.whole = "0";
  decimal.fraction.erase(decimal.fraction.find_last_not_of('0') + 1);
  if (decimal.IsZero()) decimal.negative = false;
  if (decimal.whole.size() > kMaxDigits || decimal.fraction.size() > kMaxDigits)
    return std::nullopt;
  return decimal;
}

int Decimal::Compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int sign = a.negative ? -1 : 1;
  if (a.whole != b.whole) return Less(a.whole, b.whole) ? -sign : sign;
  return a.fraction == b.fraction ? 0 : a.fraction < b.fraction ? -sign : sign;
}

void NumberRange::RaiseLow(const Bound& bound) {
  const int order = low ? Decimal::Compare(bound.value, low->value) : 1;
  if (order > 0 || (order == 0 && bound.exclusive)) low = bound;
}

void NumberRange::LowerHigh(const Bound& bound) {
  const int order = high ? Decimal::Compare(bound.value, high->value) : -1;
  if (order < 0 || (order == 0 && bound.exclusive)) high = bound;
}

void NumberRange::Narrow(const NumberRange& other) {
  if (other.low) RaiseLow(*other.low);
  if (other.high) LowerHigh(*other.high);
}

bool NumberRange::IsEmpty() const {
  return low && high && IsAbove(*low, *high);
}

Part WholeNumbers(const NumberRange& range, GbnfWriter& writer) {
  if (range.IsEmpty()) return writer.AnyOf({});
  const Bound low = range.low ? *range.low : Endless(range.high, true);
  const Bound high = range.high ? *range.high : Endless(range.low, false);
  return Signed(low, high, writer, [&writer](const Bound& from, const Bound& to) {
    std::string first = from.value.whole, last = to.value.whole;
    if (from.exclusive || !from.value.fraction.empty()) first = Successor(first);
    if (to.exclusive && to.value.fraction.empty()) {
      if (last == "0") return writer.AnyOf({});
      last = Predecessor(last);
    }
    return Less(last, first) ? writer.AnyOf({}) : Naturals(first, last, writer);
  });
}

Part RealNumbers(const NumberRange& range, GbnfWriter& writer) {
  if (range.IsEmpty()) return writer.AnyOf({});
  std::size_t n_fraction = 0, n_whole = 1;
  for (const auto* bound : {&range.low, &range.high}) {
    if (!*bound) continue;
    n_whole = std::max(n_whole, (*bound)->value.whole.size());
    n_fraction = std::max(n_fraction, (*bound)->value.fraction.size());
  }
  n_fraction = std::max(n_fraction, kExactDigits - std::min(n_whole, kExactDigits));
  const Bound low = range.low ? *range.low : Endless(range.high, true);
  const Bound high = range.high ? *range.high : Endless(range.low, false);
  return Signed(low, high, writer, [&](const Bound& from, const Bound& to) {
    return Reals(from, to, n_fraction, writer);
  });
}

}  // namespace foretoken::grammar
