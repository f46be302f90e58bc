// SPDX-License-Identifier: Apache-2.0
// The filters about numbers, and those that give any value.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja/functions/attributes.h"
#include "text/jinja/functions/filters.h"
#include "text/jinja/values/arithmetic.h"

namespace foretoken::text::jinja {
namespace {

Result<Value> Absolute(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  const Value& input = call.input;
  if (input.IsUndefined()) return InvalidArgument(input.why());
  if (!input.IsNumber())
    return InvalidArgument(fmt::format("bad operand type for abs(): '{}'", TypeName(input)));
  if (input.IsFloat()) return Value(std::abs(input.number()));
  return *input.integer() < 0 ? Negated(input) : Value(*input.integer());
}

// The text of a number as int() and float() take it: digits may have single underscores between
// them, and white space around. Nothing if it is another text.
std::optional<Utf8Text> NumberText(CharactersView text) {
  Utf8Text out;
  for (const char32_t c : Stripped(text, Ends::kBoth)) {
    if (CodeOf(c) >= 0x80) return std::nullopt;
    out += static_cast<char>(CodeOf(c));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != '_') continue;
    const auto word = [&](std::size_t at) {
      return at < out.size() && std::isalnum(static_cast<unsigned char>(out[at])) != 0;
    };
    if (i == 0 || !word(i - 1) || !word(i + 1)) return std::nullopt;
  }
  std::erase(out, '_');
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<double> FloatOf(CharactersView text) {
  const auto number = NumberText(text);
  if (!number || number->find_first_of("xXpP(") != Utf8Text::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(number->c_str(), &end);
  return *end == 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> IntegerOf(CharactersView text, int base) {
  auto number = NumberText(text);
  if (!number) return std::nullopt;
  const std::size_t digits = (*number)[0] == '-' || (*number)[0] == '+' ? 1 : 0;
  constexpr std::pair<int, char> kPrefixes[] = {{2, 'b'}, {8, 'o'}, {16, 'x'}};
  for (const auto& [prefix_base, letter] : kPrefixes) {
    const bool has = number->size() > digits + 1 && (*number)[digits] == '0' &&
                     ((*number)[digits + 1] | 0x20) == letter;
    if (!has) continue;
    if (base != prefix_base && base != 0) return std::nullopt;
    number->erase(digits, 2);
    base = prefix_base;
    break;
  }
  if (base == 0) base = 10;
  char* end = nullptr;
  errno = 0;
  const std::int64_t value = std::strtoll(number->c_str(), &end, base);
  if (number->size() == digits || *end != 0 || errno == ERANGE) return std::nullopt;
  if (std::isspace(static_cast<unsigned char>((*number)[digits])) != 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> Whole(double number) {
  if (!(std::abs(number) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

Result<Value> ToInteger(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"default", "base"}));
  FORETOKEN_TRY(const std::int64_t base, bound.Integer(1, 10));
  const Value otherwise = bound.Has(0) ? bound[0] : Value(std::int64_t{0});
  const Value& input = call.input;
  if (input.IsUndefined()) return InvalidArgument(input.why());
  if (input.integer()) return Value(*input.integer());
  std::optional<std::int64_t> result;
  if (input.IsFloat()) {
    result = Whole(input.number());
  } else if (input.IsText()) {
    call.budget().Spend(2 * input.text().size());
    if (base == 0 || (base >= 2 && base <= 36))
      result = IntegerOf(input.text(), static_cast<int>(base));
    if (!result)
      if (const auto number = FloatOf(input.text())) result = Whole(*number);
  }
  return result ? Value(*result) : otherwise;
}

Result<Value> ToFloat(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"default"}));
  const Value& input = call.input;
  if (input.IsUndefined()) return InvalidArgument(input.why());
  if (input.IsNumber()) return Value(input.number());
  if (input.IsText()) {
    call.budget().Spend(input.text().size());
    if (const auto number = FloatOf(input.text())) return Value(*number);
  }
  return bound.Has(0) ? bound[0] : Value(0.0);
}

// The nearest number with so many decimals, as Python's round() has it.
double Rounded(double number, std::int64_t precision) {
  if (!std::isfinite(number) || precision > 300) return number;
  if (precision >= 0) {
    char digits[700];
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), number);
    return std::strtod(digits, nullptr);
  }
  if (precision < -308) return std::copysign(0.0, number);
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(number / unit) * unit;
}

Result<Value> RoundInteger(std::int64_t number, std::int64_t precision) {
  if (precision >= 0) return Value(number);
  if (precision < -18) return Value(std::int64_t{0});
  std::int64_t unit = 1;
  for (; precision < 0; ++precision) unit *= 10;
  std::int64_t rest = number % unit;
  if (rest < 0) rest += unit;
  std::int64_t down = number - rest;
  const bool odd = (down / unit) % 2 != 0;
  if (rest > unit / 2 || (rest == unit / 2 && odd)) down += unit;
  return Value(down);
}

Result<Value> Round(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"precision", "method"}));
  FORETOKEN_TRY(const std::int64_t precision, bound.Integer(0, 0));
  const Characters common = U"common";
  FORETOKEN_TRY(const Characters* const method, bound.Text(1, &common));
  const Value& input = call.input;
  call.budget().Spend(1024);  // some hundred digits
  const bool known =
      SameText(*method, common) || SameText(*method, U"ceil") || SameText(*method, U"floor");
  if (!known) return InvalidArgument("method must be common, ceil or floor");
  if (input.IsUndefined()) return InvalidArgument(input.why());
  if (!input.IsNumber())
    return InvalidArgument(fmt::format("type {} doesn't define __round__ method", TypeName(input)));
  if (SameText(*method, common)) {
    if (input.integer()) return RoundInteger(*input.integer(), precision);
    return Value(Rounded(input.number(), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.number() * scale;
  if (!std::isfinite(scaled)) return InvalidArgument("cannot convert float infinity to integer");
  return Value((SameText(*method, U"ceil") ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result<Value> Default(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"default_value", "boolean"}));
  const bool replaced = call.input.IsUndefined() || (bound.IsTrueAt(1) && !IsTrue(call.input));
  if (!replaced) return call.input;
  return bound.Has(0) ? bound[0] : TextValue(call.budget(), Characters());
}

Result<Value> Attribute(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"name"}, 1));
  if (!bound[0].IsText()) return InvalidArgument("attr: its name is not a text");
  if (call.input.dictionary() != nullptr)
    return Value::Missing("attr: dictionaries have no attributes");
  call.budget().Spend(bound[0].text().size());
  return AttributeOf(call.environment, call.input, Utf8Of(bound[0].text()));
}

}  // namespace

std::vector<FilterRow> NumberFilters() {
  return {{"abs", Absolute}, {"int", ToInteger},   {"float", ToFloat}, {"round", Round},
          {"d", Default},    {"default", Default}, {"attr", Attribute}};
}

}  // namespace foretoken::text::jinja
