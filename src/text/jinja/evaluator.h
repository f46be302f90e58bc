// SPDX-License-Identifier: Apache-2.0
// text/jinja/evaluator.h: runs the tree of a template.
#pragma once

#include "text/jinja/functions/arguments.h"
#include "text/jinja/functions/environment.h"
#include "text/jinja/scope.h"
#include "text/jinja/syntax/node.h"

namespace foretoken::text::jinja {

class Evaluator {
 public:
  explicit Evaluator(Environment& environment)
      : environment_(environment), budget_(environment.budget) {}

  // What the block writes. Errors: "line N: ...".
  [[nodiscard]] Result<Characters> Render(const Block& block, const ScopeRef& scope);

 private:
  enum class Flow { kOn, kBreak, kContinue };
  using Evaluated = Result<Value>;

  // statements.cpp
  Result<Flow> ExecuteBlock(const Block& block, const ScopeRef& scope);
  Result<Flow> Execute(const Statement& statement, const ScopeRef& scope);
  Result<Flow> ExecuteIf(const Statement& statement, const ScopeRef& scope);
  Result<Flow> ExecuteFor(const ForStatement& loop, const Value& items, const ScopeRef& scope,
                          int depth0);
  Result<Values> LoopItems(const ForStatement& loop, const Value& items, const ScopeRef& scope);
  Result<Flow> ExecuteNested(const Statement& statement, const ScopeRef& scope);
  Status ExecuteCallBlock(const Statement& statement, const ScopeRef& scope);
  Status Assign(const Target& target, const Value& value, const ScopeRef& scope);
  // What a block with variables of its own writes.
  Result<Characters> Captured(const Block& block, const ScopeRef& scope);
  Status Write(CharactersView text);

  // evaluator.cpp
  Evaluated Evaluate(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateKind(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateName(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateParts(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateDictionary(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateSign(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateLogic(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateConditional(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateCompare(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateArithmetic(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateConcatenation(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateItem(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateSlice(const Expression& e, const ScopeRef& scope);
  Evaluated EvaluateTest(const Expression& e, const ScopeRef& scope);
  // `block` is the input of a filter that has none before it.
  Evaluated EvaluateFilter(const Expression& e, const ScopeRef& scope, const Value* block);

  // calls.cpp
  Evaluated EvaluateCall(const Expression& e, const ScopeRef& scope, const Value* caller);
  Result<Arguments> EvaluateArguments(const CallArguments& arguments, const ScopeRef& scope);
  Evaluated CallMacro(const Macro& macro, Arguments arguments);
  // `taken` says which of the arguments with names are bound.
  Status BindParameters(const MacroStatement& macro, const Arguments& arguments, List<char>& taken,
                        const ScopeRef& scope);
  Status BindRest(const MacroStatement& macro, const Arguments& arguments, List<char>& taken,
                  const ScopeRef& scope);
  Evaluated CallLoop(const Loop& loop, const Arguments& arguments);

  ScopeRef Inner(const ScopeRef& scope) { return Shared(Scope{.parent = scope}); }
  // Adds the line to an error that has none.
  tl::unexpected<Error> At(int line, Error error);

  Environment& environment_;
  Budget& budget_;
  Characters out_;
  bool located_ = false;
};

}  // namespace foretoken::text::jinja
