// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/predicates.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/filters.h"
#include "text/jinja/values/arithmetic.h"
#include "text/jinja/values/comparison.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

bool IsSequence(const Value& value) {
  const Sequence* const sequence = value.sequence();
  return value.IsText() || value.IsUndefined() || value.dictionary() != nullptr ||
         (sequence != nullptr && sequence->IsIndexed());
}

bool IsCallable(const Value& value) {
  return value.macro() != nullptr || value.callable() != nullptr || value.loop() != nullptr ||
         value.IsUndefined();
}

bool IsEscaped(const Value& value) {
  return value.IsText() && value.text_object()->markup;
}

bool IsLoopOrIterable(const Value& value) {
  return IsIterable(value) || value.loop() != nullptr;
}

struct KindRow {
  std::string_view name;
  bool (*holds)(const Value&);
};
constexpr KindRow kKinds[] = {
    {"defined", [](const Value& v) { return !v.IsUndefined(); }},
    {"undefined", [](const Value& v) { return v.IsUndefined(); }},
    {"none", [](const Value& v) { return v.IsNone(); }},
    {"boolean", [](const Value& v) { return v.IsBoolean(); }},
    {"true", [](const Value& v) { return v.IsBoolean() && v.boolean(); }},
    {"false", [](const Value& v) { return v.IsBoolean() && !v.boolean(); }},
    {"integer", [](const Value& v) { return v.IsInteger(); }},
    {"float", [](const Value& v) { return v.IsFloat(); }},
    {"number", [](const Value& v) { return v.IsNumber(); }},
    {"string", [](const Value& v) { return v.IsText(); }},
    {"mapping", [](const Value& v) { return v.dictionary() != nullptr; }},
    {"sequence", IsSequence},
    {"iterable", IsLoopOrIterable},
    {"callable", IsCallable},
    {"escaped", IsEscaped}};

struct OperatorRow {
  std::string_view name;
  Operator op;
};
constexpr OperatorRow kOperators[] = {
    {"==", Operator::kEqual},        {"eq", Operator::kEqual},
    {"equalto", Operator::kEqual},   {"!=", Operator::kNotEqual},
    {"ne", Operator::kNotEqual},     {">", Operator::kGreater},
    {"gt", Operator::kGreater},      {"greaterthan", Operator::kGreater},
    {">=", Operator::kGreaterEqual}, {"ge", Operator::kGreaterEqual},
    {"<", Operator::kLess},          {"lt", Operator::kLess},
    {"lessthan", Operator::kLess},   {"<=", Operator::kLessEqual},
    {"le", Operator::kLessEqual},    {"in", Operator::kIn}};

constexpr std::string_view kOthers[] = {"odd",   "even",   "divisibleby", "lower",
                                        "upper", "sameas", "filter",      "test"};

bool IsTest(std::string_view name) {
  const auto named = [&](const auto& row) { return row.name == name; };
  return std::any_of(std::begin(kKinds), std::end(kKinds), named) ||
         std::any_of(std::begin(kOperators), std::end(kOperators), named) ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

// Whether the value modulo a number is `rest`.
Result<bool> HasRest(Environment& environment, const Value& value, const Value& divisor,
                     std::int64_t rest) {
  FORETOKEN_TRY(const Value found, Apply(environment.budget, Operator::kModulo, value, divisor));
  return Holds(environment.budget, Operator::kEqual, found, Value(rest));
}

Result<bool> OtherHolds(Environment& environment, std::string_view name, const Value& input,
                        const Arguments& arguments) {
  if (name == "divisibleby" || name == "sameas") {
    FORETOKEN_TRY(const Bound bound, Bound::Make(name, arguments, {"other"}, 1));
    if (name == "sameas") {
      FORETOKEN_CHECK_OK(SpendComparison(environment.budget, input, bound[0]));
      return input.SameAs(bound[0]);
    }
    return HasRest(environment, input, bound[0], 0);
  }
  FORETOKEN_CHECK_OK(Bound::Make(name, arguments, {}));
  if (name == "odd" || name == "even")
    return HasRest(environment, input, Value(std::int64_t{2}), name == "odd" ? 1 : 0);
  const Characters text = StrOf(environment.budget, input);
  if (name == "lower") return IsLower(text);
  if (name == "upper") return IsUpper(text);
  return name == "filter" ? IsFilter(Utf8Of(text)) : IsTest(Utf8Of(text));
}

}  // namespace

Result<bool> TestHolds(Environment& environment, std::string_view name, const Value& input,
                       const Arguments& arguments) {
  environment.budget.Spend();
  for (const KindRow& row : kKinds)
    if (row.name == name) {
      FORETOKEN_CHECK_OK(Bound::Make(name, arguments, {}));
      return row.holds(input);
    }
  for (const OperatorRow& row : kOperators)
    if (row.name == name) {
      FORETOKEN_TRY(const Bound bound, Bound::Make(name, arguments, {"other"}, 1));
      return Holds(environment.budget, row.op, input, bound[0]);
    }
  if (IsTest(name)) return OtherHolds(environment, name, input, arguments);
  return Fail(ErrorCode::kUnsupported,
              fmt::format("there is no test '{}'; use another", Shown(name)));
}

}  // namespace foretoken::text::jinja
