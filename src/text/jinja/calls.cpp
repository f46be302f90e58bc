// SPDX-License-Identifier: Apache-2.0
// Calls of functions, methods, macros and recursive loops.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/evaluator.h"
#include "text/jinja/functions/globals.h"
#include "text/jinja/functions/methods.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

// Takes a named argument out of the rest.
std::optional<Value> TakeNamed(Arguments& arguments, std::string_view name) {
  auto& named = arguments.named;
  const auto found = std::find_if(named.begin(), named.end(),
                                  [&](const auto& argument) { return argument.first == name; });
  if (found == named.end()) return std::nullopt;
  Value value = std::move(found->second);
  named.erase(found);
  return value;
}

}  // namespace

Result<Arguments> Evaluator::EvaluateArguments(const CallArguments& arguments,
                                               const ScopeRef& scope) {
  Arguments evaluated;
  for (const ExpressionRef& argument : arguments.positional) {
    FORETOKEN_TRY(Value value, Evaluate(*argument, scope));
    evaluated.positional.push_back(std::move(value));
  }
  if (arguments.list != nullptr) {
    FORETOKEN_TRY(const Value list, Evaluate(*arguments.list, scope));
    FORETOKEN_TRY(const Values items, ItemsOf(budget_, list));
    evaluated.positional.insert(evaluated.positional.end(), items.begin(), items.end());
  }
  for (const Keyword& keyword : arguments.keywords) {
    FORETOKEN_TRY(Value value, Evaluate(*keyword.value, scope));
    evaluated.named.emplace_back(keyword.name, std::move(value));
  }
  if (arguments.dictionary == nullptr) return evaluated;
  FORETOKEN_TRY(const Value dictionary, Evaluate(*arguments.dictionary, scope));
  if (dictionary.dictionary() == nullptr)
    return InvalidArgument("argument after ** must be a mapping");
  for (const auto& [key, value] : dictionary.dictionary()->items) {
    if (!key.IsText()) return InvalidArgument("keywords must be strings");
    std::string name = ToUtf8(key.text());
    budget_.Spend(32 * evaluated.named.size());
    for (const auto& argument : evaluated.named)
      if (argument.first == name)
        return InvalidArgument(
            fmt::format("multiple values for keyword argument '{}'", Shown(name)));
    evaluated.named.emplace_back(std::move(name), value);
  }
  return evaluated;
}

Evaluator::Evaluated Evaluator::EvaluateCall(const Expression& e, const ScopeRef& scope,
                                             const Value* caller) {
  FORETOKEN_TRY(const Value callee, Evaluate(*e.parts[0], scope));
  FORETOKEN_TRY(Arguments arguments, EvaluateArguments(*e.arguments, scope));
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (const auto* const macro = callee.macro()) return CallMacro(**macro, std::move(arguments));
  if (const auto* const loop = callee.loop()) return CallLoop(**loop, arguments);
  if (callee.IsUndefined()) return InvalidArgument(callee.why());
  const Callable* const callable = callee.callable();
  if (callable == nullptr)
    return InvalidArgument(fmt::format("'{}' object is not callable", TypeName(callee)));
  if (callable->kind == Callable::Kind::kFunction)
    return CallGlobal(environment_, callable->name, arguments);
  return CallMethod(environment_, callable->self, callable->name, arguments);
}

Evaluator::Evaluated Evaluator::CallMacro(const Macro& macro, Arguments arguments) {
  const MacroStatement& statement = *macro.statement;
  const ScopeRef scope = Inner(macro.scope);
  FORETOKEN_CHECK_OK(BindParameters(statement, arguments, scope));
  FORETOKEN_CHECK_OK(BindRest(statement, arguments, scope));
  FORETOKEN_TRY(Characters text, Captured(statement.body, scope));
  return TextValue(budget_, std::move(text));
}

Status Evaluator::BindParameters(const MacroStatement& macro, Arguments& arguments,
                                 const ScopeRef& scope) {
  const std::size_t n = macro.parameters.size();
  const std::size_t first_default = n - macro.defaults.size();
  const std::size_t n_given = std::min(n, arguments.positional.size());
  std::vector<std::optional<Value>> given(n);
  for (std::size_t i = 0; i < n; ++i)
    given[i] = i < n_given ? arguments.positional[i] : TakeNamed(arguments, macro.parameters[i]);
  arguments.positional.erase(arguments.positional.begin(),
                             arguments.positional.begin() + static_cast<std::ptrdiff_t>(n_given));
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& name = macro.parameters[i];
    Value value = Value::Missing(fmt::format("parameter '{}' was not provided", name));
    if (given[i]) {
      value = *given[i];
    } else if (i >= first_default) {
      FORETOKEN_TRY(value, Evaluate(*macro.defaults[i - first_default], scope));
    }
    scope->Set(name, std::move(value));
  }
  return {};
}

Status Evaluator::BindRest(const MacroStatement& macro, Arguments& arguments,
                           const ScopeRef& scope) {
  if (macro.uses_caller)
    scope->Set("caller",
               TakeNamed(arguments, "caller").value_or(Value::Missing("No caller defined")));
  if (macro.uses_kwargs) {
    DictionaryBuilder rest;
    for (const auto& [name, value] : arguments.named) rest.Set(budget_, name, value);
    scope->Set("kwargs", rest.Take(budget_));
  } else if (!arguments.named.empty()) {
    return InvalidArgument(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name,
                                       Shown(arguments.named.front().first)));
  }
  if (macro.uses_varargs)
    scope->Set("varargs", ListValue(budget_, arguments.positional, SequenceKind::kTuple));
  else if (!arguments.positional.empty())
    return InvalidArgument(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name,
                                       macro.parameters.size()));
  return {};
}

Evaluator::Evaluated Evaluator::CallLoop(const Loop& loop, const Arguments& arguments) {
  if (loop.statement == nullptr)
    return InvalidArgument("The loop must have the 'recursive' marker to be called recursively.");
  FORETOKEN_TRY(const Bound bound, Bound::Make("loop", arguments, {"iterable"}, 1));
  Characters outer = std::exchange(out_, {});
  const ScopeRef scope = loop.scope;
  auto flow = ExecuteFor(*loop.statement, bound[0], scope, loop.depth0 + 1);
  Characters text = std::exchange(out_, std::move(outer));
  if (!flow) return Fail(std::move(flow).error());
  return TextValue(budget_, std::move(text));
}

}  // namespace foretoken::text::jinja
