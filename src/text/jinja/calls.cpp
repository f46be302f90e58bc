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

tl::unexpected<Error> GivenTwice(std::string_view name) {
  return InvalidArgument(fmt::format("multiple values for keyword argument '{}'", Shown(name)));
}

// Takes a named argument that was not taken before; nullptr: there is none.
const Value* TakeNamed(const Arguments& arguments, List<char>& taken, std::string_view name) {
  const std::size_t place = arguments.named.PlaceOf(name);
  if (place == arguments.named.size() || std::exchange(taken[place], 1) != 0) return nullptr;
  return &arguments.named.items()[place].second;
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
    evaluated.named.Set(keyword.name, std::move(value));  // the parser refused a name twice
  }
  if (arguments.dictionary == nullptr) return evaluated;
  FORETOKEN_TRY(const Value dictionary, Evaluate(*arguments.dictionary, scope));
  if (dictionary.dictionary() == nullptr)
    return InvalidArgument("argument after ** must be a mapping");
  for (const auto& [key, value] : dictionary.dictionary()->items) {
    if (!key.IsText()) return InvalidArgument("keywords must be strings");
    budget_.Spend(key.text().size());
    const Utf8Text name = Utf8Of(key.text());
    if (!evaluated.named.Add(name, value)) return GivenTwice(name);
  }
  return evaluated;
}

Evaluator::Evaluated Evaluator::EvaluateCall(const Expression& e, const ScopeRef& scope,
                                             const Value* caller) {
  FORETOKEN_TRY(const Value callee, Evaluate(*e.parts[0], scope));
  FORETOKEN_TRY(Arguments arguments, EvaluateArguments(*e.arguments, scope));
  if (caller != nullptr && !arguments.named.Add("caller", *caller)) return GivenTwice("caller");
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
  List<char> taken(arguments.named.size(), 0);
  FORETOKEN_CHECK_OK(BindParameters(statement, arguments, taken, scope));
  FORETOKEN_CHECK_OK(BindRest(statement, arguments, taken, scope));
  FORETOKEN_TRY(Characters text, Captured(statement.body, scope));
  return TextValue(budget_, std::move(text));
}

Status Evaluator::BindParameters(const MacroStatement& macro, const Arguments& arguments,
                                 List<char>& taken, const ScopeRef& scope) {
  const std::size_t n = macro.parameters.size();
  const std::size_t first_default = n - macro.defaults.size();
  const std::size_t n_given = std::min(n, arguments.positional.size());
  List<const Value*> given(n);
  for (std::size_t i = 0; i < n; ++i)
    given[i] =
        i < n_given ? &arguments.positional[i] : TakeNamed(arguments, taken, macro.parameters[i]);
  for (std::size_t i = 0; i < n; ++i) {
    constexpr std::size_t kTouched = 64;  // a name, and the error of its use
    budget_.Spend(kTouched);
    FORETOKEN_CHECK_OK(budget_.status());
    const std::string& name = macro.parameters[i];
    Value value;
    if (given[i] != nullptr) {
      value = *given[i];
    } else if (i >= first_default) {
      FORETOKEN_TRY(value, Evaluate(*macro.defaults[i - first_default], scope));
    } else {
      value = Value::Missing(fmt::format("parameter '{}' was not provided", name));
    }
    scope->Set(name, std::move(value));
  }
  return {};
}

Status Evaluator::BindRest(const MacroStatement& macro, const Arguments& arguments,
                           List<char>& taken, const ScopeRef& scope) {
  if (macro.uses_caller) {
    const Value* const caller = TakeNamed(arguments, taken, "caller");
    scope->Set("caller", caller != nullptr ? *caller : Value::Missing("No caller defined"));
  }
  DictionaryBuilder rest(budget_);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] != 0) continue;
    const auto& [name, value] = arguments.named.items()[i];
    if (!macro.uses_kwargs)
      return InvalidArgument(
          fmt::format("macro '{}' takes no keyword argument '{}'", macro.name, Shown(name)));
    rest.Set(name, value);
  }
  if (macro.uses_kwargs) scope->Set("kwargs", rest.Take());
  const std::size_t n_bound = std::min(macro.parameters.size(), arguments.positional.size());
  if (macro.uses_varargs)
    scope->Set("varargs",
               ListValue(budget_,
                         Values(arguments.positional.begin() + static_cast<std::ptrdiff_t>(n_bound),
                                arguments.positional.end()),
                         SequenceKind::kTuple));
  else if (n_bound < arguments.positional.size())
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
