// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/evaluator.h"

#include <fmt/format.h>

#include "text/jinja/functions/attributes.h"
#include "text/jinja/functions/filters.h"
#include "text/jinja/functions/globals.h"
#include "text/jinja/functions/predicates.h"
#include "text/jinja/values/arithmetic.h"

namespace foretoken::text::jinja {

tl::unexpected<Error> Evaluator::At(int line, Error error) {
  if (!std::exchange(located_, true))
    error.message = fmt::format("line {}: {}", line, error.message);
  return Fail(std::move(error));
}

Evaluator::Evaluated Evaluator::Evaluate(const Expression& e, const ScopeRef& scope) {
  budget_.Spend();
  if (!budget_.Enter()) return At(e.line, budget_.status().error());
  Evaluated value = EvaluateKind(e, scope);
  budget_.Leave();
  if (!value) return At(e.line, std::move(value).error());
  if (budget_.over()) return At(e.line, budget_.status().error());
  return value;
}

Evaluator::Evaluated Evaluator::EvaluateKind(const Expression& e, const ScopeRef& scope) {
  switch (e.kind) {
    case ExpressionKind::kLiteral:
      return e.value;
    case ExpressionKind::kName:
      return EvaluateName(e, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return EvaluateParts(e, scope);
    case ExpressionKind::kDictionary:
      return EvaluateDictionary(e, scope);
    case ExpressionKind::kNegative:
    case ExpressionKind::kPositive:
      return EvaluateSign(e, scope);
    case ExpressionKind::kNot:
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return EvaluateLogic(e, scope);
    case ExpressionKind::kConditional:
      return EvaluateConditional(e, scope);
    case ExpressionKind::kCompare:
      return EvaluateCompare(e, scope);
    case ExpressionKind::kArithmetic:
      return EvaluateArithmetic(e, scope);
    case ExpressionKind::kConcatenate:
      return EvaluateConcatenation(e, scope);
    case ExpressionKind::kAttribute:
    case ExpressionKind::kItem:
      return EvaluateItem(e, scope);
    case ExpressionKind::kSlice:
      return EvaluateSlice(e, scope);
    case ExpressionKind::kCall:
      return EvaluateCall(e, scope, nullptr);
    case ExpressionKind::kFilter:
      return EvaluateFilter(e, scope, nullptr);
    case ExpressionKind::kTest:
      break;
  }
  return EvaluateTest(e, scope);
}

Evaluator::Evaluated Evaluator::EvaluateName(const Expression& e, const ScopeRef& scope) {
  if (const Value* const found = scope->Find(budget_, e.name)) return *found;
  if (const auto function = GlobalFunction(e.name)) return *function;
  return Value::Missing(fmt::format("'{}' is undefined", Shown(e.name)));
}

Evaluator::Evaluated Evaluator::EvaluateParts(const Expression& e, const ScopeRef& scope) {
  Values items;
  for (const ExpressionRef& part : e.parts) {
    FORETOKEN_TRY(Value value, Evaluate(*part, scope));
    items.push_back(std::move(value));
  }
  return ListValue(budget_, std::move(items),
                   e.kind == ExpressionKind::kList ? SequenceKind::kList : SequenceKind::kTuple);
}

Evaluator::Evaluated Evaluator::EvaluateDictionary(const Expression& e, const ScopeRef& scope) {
  DictionaryBuilder members(budget_);
  for (std::size_t i = 0; i < e.parts.size(); i += 2) {
    FORETOKEN_TRY(Value key, Evaluate(*e.parts[i], scope));
    if (!IsHashable(key))
      return InvalidArgument(fmt::format("unhashable type: '{}'", TypeName(key)));
    FORETOKEN_TRY(Value value, Evaluate(*e.parts[i + 1], scope));
    members.Set(std::move(key), std::move(value));
  }
  return members.Take();
}

Evaluator::Evaluated Evaluator::EvaluateSign(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(Value value, Evaluate(*e.parts[0], scope));
  if (e.kind == ExpressionKind::kNegative) return Negated(value);
  if (value.IsUndefined()) return InvalidArgument(value.why());
  if (value.IsBoolean()) return Value(*value.integer());
  if (value.IsNumber()) return value;
  return InvalidArgument(fmt::format("bad operand type for unary +: '{}'", TypeName(value)));
}

Evaluator::Evaluated Evaluator::EvaluateLogic(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(Value left, Evaluate(*e.parts[0], scope));
  if (e.kind == ExpressionKind::kNot) return Value(!IsTrue(left));
  if (IsTrue(left) == (e.kind == ExpressionKind::kOr)) return left;
  return Evaluate(*e.parts[1], scope);
}

Evaluator::Evaluated Evaluator::EvaluateConditional(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(const Value condition, Evaluate(*e.parts[0], scope));
  if (IsTrue(condition)) return Evaluate(*e.parts[1], scope);
  if (e.parts[2] != nullptr) return Evaluate(*e.parts[2], scope);
  return Value::Missing("the condition is false, and there is no `else`");
}

Evaluator::Evaluated Evaluator::EvaluateCompare(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(Value left, Evaluate(*e.parts[0], scope));
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    FORETOKEN_TRY(Value right, Evaluate(*e.parts[i + 1], scope));
    FORETOKEN_TRY(const bool holds, Holds(budget_, e.operators[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Evaluator::Evaluated Evaluator::EvaluateArithmetic(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(const Value left, Evaluate(*e.parts[0], scope));
  FORETOKEN_TRY(const Value right, Evaluate(*e.parts[1], scope));
  return Apply(budget_, e.operators[0], left, right);
}

Evaluator::Evaluated Evaluator::EvaluateConcatenation(const Expression& e, const ScopeRef& scope) {
  Characters text;
  for (const ExpressionRef& part : e.parts) {
    FORETOKEN_TRY(const Value value, Evaluate(*part, scope));
    text += StrOf(budget_, value);
  }
  return TextValue(budget_, std::move(text));
}

Evaluator::Evaluated Evaluator::EvaluateItem(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(const Value value, Evaluate(*e.parts[0], scope));
  if (e.kind == ExpressionKind::kAttribute) return AttributeOf(environment_, value, e.name);
  FORETOKEN_TRY(const Value key, Evaluate(*e.parts[1], scope));
  return ItemOf(environment_, value, key);
}

Evaluator::Evaluated Evaluator::EvaluateSlice(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(const Value value, Evaluate(*e.parts[0], scope));
  Value bounds[3] = {Value(None{}), Value(None{}), Value(None{})};
  for (std::size_t i = 0; i < 3; ++i) {
    if (e.parts[i + 1] == nullptr) continue;
    FORETOKEN_TRY(bounds[i], Evaluate(*e.parts[i + 1], scope));
  }
  return SliceOf(environment_, value, bounds[0], bounds[1], bounds[2]);
}

Evaluator::Evaluated Evaluator::EvaluateTest(const Expression& e, const ScopeRef& scope) {
  FORETOKEN_TRY(const Value value, Evaluate(*e.parts[0], scope));
  FORETOKEN_TRY(const Arguments arguments, EvaluateArguments(*e.arguments, scope));
  FORETOKEN_TRY(const bool holds, TestHolds(environment_, e.name, value, arguments));
  return Value(holds);
}

Evaluator::Evaluated Evaluator::EvaluateFilter(const Expression& e, const ScopeRef& scope,
                                               const Value* block) {
  Value input;
  if (e.parts[0] == nullptr) {
    input = *block;
  } else if (block != nullptr) {
    FORETOKEN_TRY(input, EvaluateFilter(*e.parts[0], scope, block));
  } else {
    FORETOKEN_TRY(input, Evaluate(*e.parts[0], scope));
  }
  FORETOKEN_TRY(const Arguments arguments, EvaluateArguments(*e.arguments, scope));
  return CallFilter(environment_, e.name, input, arguments);
}

}  // namespace foretoken::text::jinja
