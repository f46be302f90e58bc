// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/arithmetic.h"

#include <fmt/format.h>

#include <cmath>

#include "text/jinja/values/comparison.h"
#include "text/jinja/values/printf_format.h"

namespace foretoken::text::jinja {
namespace {

Result<Value> Mismatch(Operator op, const Value& a, const Value& b) {
  return InvalidArgument(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                     SignOf(op), TypeName(a), TypeName(b)));
}

Result<Value> TooBig() {
  return Fail(ErrorCode::kTooLarge, "an integer is beyond 64 bits");
}

Result<std::int64_t> FloorQuotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return InvalidArgument("integer division or modulo by zero");
  if (b == -1 && a == INT64_MIN) return Fail(ErrorCode::kTooLarge, "an integer is beyond 64 bits");
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Result<Value> IntegerPower(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return InvalidArgument("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t power = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(power, base, &power)) return TooBig();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return TooBig();
  }
  return Value(power);
}

Result<Value> IntegerArithmetic(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? TooBig() : Value(result);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? TooBig() : Value(result);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? TooBig() : Value(result);
    case Operator::kDivide:
      if (b == 0) return InvalidArgument("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kPower:
      return IntegerPower(a, b);
    default:
      break;
  }
  FORETOKEN_TRY(const std::int64_t quotient, FloorQuotient(a, b));
  return Value(op == Operator::kFloorDivide ? quotient : a - quotient * b);
}

double FloatModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// Python rounds the quotient of what is left without the modulo, so that both agree.
double FloatFloorQuotient(double a, double b) {
  const double quotient = (a - FloatModulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Result<Value> FloatArithmetic(Operator op, double a, double b) {
  const bool divides =
      op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0)
    return InvalidArgument(op == Operator::kDivide        ? "float division by zero"
                           : op == Operator::kFloorDivide ? "float floor division by zero"
                                                          : "float modulo");
  switch (op) {
    case Operator::kAdd:
      return Value(a + b);
    case Operator::kSubtract:
      return Value(a - b);
    case Operator::kMultiply:
      return Value(a * b);
    case Operator::kDivide:
      return Value(a / b);
    case Operator::kModulo:
      return Value(FloatModulo(a, b));
    case Operator::kFloorDivide:
      return Value(FloatFloorQuotient(a, b));
    default:
      break;
  }
  if (a == 0 && b < 0) return InvalidArgument("0.0 cannot be raised to a negative power");
  if (a < 0 && b != std::floor(b)) return InvalidArgument("complex numbers are not supported");
  const double power = std::pow(a, b);
  if (std::isinf(power) && !std::isinf(a) && !std::isinf(b))
    return InvalidArgument("Result too large");
  return Value(power);
}

Result<Value> Repeat(Budget& budget, const Value& value, std::int64_t times) {
  const std::size_t n = times < 0 ? 0 : static_cast<std::size_t>(times);
  const std::size_t size = *LengthOf(value);
  if (n != 0)
    FORETOKEN_CHECK_OK(budget.Admit(n, std::max<std::size_t>(1, size) * sizeof(char32_t)));
  if (value.IsText()) {
    Characters out;
    out.reserve(n * size);
    for (std::size_t i = 0; i < n && size > 0; ++i) out += value.text();
    return TextValue(budget, std::move(out), value.text_object()->markup);
  }
  if (n != 0) FORETOKEN_CHECK_OK(budget.Admit(n, std::max<std::size_t>(1, size) * sizeof(Value)));
  const Sequence& sequence = *value.sequence();
  Values items;
  items.reserve(n * size);
  for (std::size_t i = 0; i < n && size > 0; ++i)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return ListValue(budget, std::move(items), sequence.kind);
}

bool IsListOrTuple(const Value& value) {
  const Sequence* const sequence = value.sequence();
  return sequence != nullptr &&
         (sequence->kind == SequenceKind::kList || sequence->kind == SequenceKind::kTuple);
}

Result<Value> AddTexts(Budget& budget, const TextObject& a, const TextObject& b) {
  const bool markup = a.markup || b.markup;
  Characters out;
  out.reserve(a.characters.size() + b.characters.size());
  for (const TextObject* const part : {&a, &b})
    out += markup && !part->markup ? Escaped(part->characters) : part->characters;
  return TextValue(budget, std::move(out), markup);
}

Result<Value> Add(Budget& budget, const Value& a, const Value& b) {
  if (a.IsText() && b.IsText()) return AddTexts(budget, *a.text_object(), *b.text_object());
  if (IsListOrTuple(a) && IsListOrTuple(b) && a.sequence()->kind == b.sequence()->kind) {
    Values items;
    items.reserve(a.sequence()->items.size() + b.sequence()->items.size());
    for (const Value* const part : {&a, &b})
      items.insert(items.end(), part->sequence()->items.begin(), part->sequence()->items.end());
    return ListValue(budget, std::move(items), a.sequence()->kind);
  }
  if (a.IsText())
    return InvalidArgument(
        fmt::format("can only concatenate str (not \"{}\") to str", TypeName(b)));
  return Mismatch(Operator::kAdd, a, b);
}

}  // namespace

std::string_view SignOf(Operator op) {
  constexpr std::string_view kSigns[] = {"+",  "-", "*",  "/", "//", "%",  "** or pow()", "==",
                                         "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSigns[static_cast<std::size_t>(op)];
}

Result<Value> Apply(Budget& budget, Operator op, const Value& a, const Value& b) {
  if (a.IsUndefined()) return InvalidArgument(a.why());
  if (op == Operator::kModulo && a.IsText()) {
    FORETOKEN_TRY(Characters out, FormatByPercent(budget, a.text(), b));
    return TextValue(budget, std::move(out), a.text_object()->markup);
  }
  if (b.IsUndefined()) return InvalidArgument(b.why());
  if (a.integer() && b.integer()) return IntegerArithmetic(op, *a.integer(), *b.integer());
  if (a.IsNumber() && b.IsNumber()) return FloatArithmetic(op, a.number(), b.number());
  if (op == Operator::kAdd) return Add(budget, a, b);
  if (op == Operator::kMultiply) {
    if ((a.IsText() || IsListOrTuple(a)) && b.integer()) return Repeat(budget, a, *b.integer());
    if ((b.IsText() || IsListOrTuple(b)) && a.integer()) return Repeat(budget, b, *a.integer());
  }
  return Mismatch(op, a, b);
}

Result<Value> Negated(const Value& value) {
  if (value.IsUndefined()) return InvalidArgument(value.why());
  if (value.IsFloat()) return Value(-value.number());
  if (!value.integer())
    return InvalidArgument(fmt::format("bad operand type for unary -: '{}'", TypeName(value)));
  if (*value.integer() == INT64_MIN) return TooBig();
  return Value(-*value.integer());
}

Result<bool> Holds(Budget& budget, Operator op, const Value& a, const Value& b) {
  if (op == Operator::kIn || op == Operator::kNotIn) {
    FORETOKEN_TRY(const bool found, Contains(budget, b, a));
    return found == (op == Operator::kIn);
  }
  FORETOKEN_CHECK_OK(SpendComparison(budget, a, b));
  if (op == Operator::kEqual) return AreEqual(a, b);
  if (op == Operator::kNotEqual) return !AreEqual(a, b);
  FORETOKEN_TRY(const int order, Compare(a, b, SignOf(op)));
  if (order == 2) return false;
  switch (op) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Characters Escaped(CharactersView text) {
  Characters out;
  for (const char32_t c : text) {
    switch (CodeOf(c)) {
      case U'&':
        out += U"&amp;";
        break;
      case U'<':
        out += U"&lt;";
        break;
      case U'>':
        out += U"&gt;";
        break;
      case U'\'':
        out += U"&#39;";
        break;
      case U'"':
        out += U"&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace foretoken::text::jinja
