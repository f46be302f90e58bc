// SPDX-License-Identifier: Apache-2.0
// The statements of templates.
#include <fmt/format.h>

#include "text/jinja/evaluator.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {

Result<Characters> Evaluator::Render(const Block& block, const ScopeRef& scope) {
  FORETOKEN_CHECK_OK(ExecuteBlock(block, scope));
  return std::move(out_);
}

Status Evaluator::Write(CharactersView text) {
  budget_.Spend(text.size());
  budget_.SeeOutput(out_.size() + text.size());
  FORETOKEN_CHECK_OK(budget_.status());
  out_ += text;
  return {};
}

Result<Characters> Evaluator::Captured(const Block& block, const ScopeRef& scope) {
  Characters outer = std::exchange(out_, {});
  auto flow = ExecuteBlock(block, scope);
  Characters text = std::exchange(out_, std::move(outer));
  if (!flow) return Fail(std::move(flow).error());
  return text;
}

Result<Evaluator::Flow> Evaluator::ExecuteBlock(const Block& block, const ScopeRef& scope) {
  for (const Statement& statement : block) {
    budget_.Spend();
    if (!budget_.Enter()) return At(statement.line, budget_.status().error());
    Result<Flow> flow = WithinMemory(budget_, [&] { return Execute(statement, scope); });
    budget_.Leave();
    if (!flow) return At(statement.line, std::move(flow).error());
    if (*flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::Execute(const Statement& s, const ScopeRef& scope) {
  switch (s.kind) {
    case StatementKind::kData:
      FORETOKEN_CHECK_OK(Write(s.text.text()));
      return Flow::kOn;
    case StatementKind::kOutput: {
      FORETOKEN_TRY(const Value value, Evaluate(*s.expression, scope));
      FORETOKEN_CHECK_OK(value.IsText() ? Write(value.text()) : Write(StrOf(budget_, value)));
      return Flow::kOn;
    }
    case StatementKind::kIf:
      return ExecuteIf(s, scope);
    case StatementKind::kFor: {
      FORETOKEN_TRY(const Value items, Evaluate(*s.loop->items, scope));
      return ExecuteFor(*s.loop, items, scope, 0);
    }
    case StatementKind::kSet: {
      FORETOKEN_TRY(const Value value, Evaluate(*s.expression, scope));
      FORETOKEN_CHECK_OK(Assign(s.target, value, scope));
      return Flow::kOn;
    }
    case StatementKind::kMacro:
      environment_.scopes.push_back(scope);
      scope->Set(s.macro->name,
                 Value(std::shared_ptr<const Macro>(Shared(Macro{s.macro.get(), scope}))));
      return Flow::kOn;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
    default:
      return ExecuteNested(s, scope);
  }
}

// Statements whose bodies have variables of their own.
Result<Evaluator::Flow> Evaluator::ExecuteNested(const Statement& s, const ScopeRef& scope) {
  const ScopeRef inner = Inner(scope);
  if (s.kind == StatementKind::kScope) return ExecuteBlock(s.body, inner);
  if (s.kind == StatementKind::kCall) {
    FORETOKEN_CHECK_OK(ExecuteCallBlock(s, scope));
    return Flow::kOn;
  }
  if (s.kind == StatementKind::kWith) {
    for (const auto& [target, expression] : s.assignments) {
      FORETOKEN_TRY(const Value value, Evaluate(*expression, scope));
      FORETOKEN_CHECK_OK(Assign(target, value, inner));
    }
    return ExecuteBlock(s.body, inner);
  }
  FORETOKEN_TRY(Characters text, Captured(s.body, inner));
  Value value = TextValue(budget_, std::move(text));
  if (s.expression != nullptr) {
    FORETOKEN_TRY(value, EvaluateFilter(*s.expression, scope, &value));
  }
  if (s.kind == StatementKind::kSetBlock)
    FORETOKEN_CHECK_OK(Assign(s.target, value, scope));
  else
    FORETOKEN_CHECK_OK(Write(StrOf(budget_, value)));
  return Flow::kOn;
}

Status Evaluator::ExecuteCallBlock(const Statement& s, const ScopeRef& scope) {
  environment_.scopes.push_back(scope);
  const Value caller(std::shared_ptr<const Macro>(Shared(Macro{s.macro.get(), scope})));
  FORETOKEN_TRY(const Value value, EvaluateCall(*s.expression, scope, &caller));
  return Write(StrOf(budget_, value));
}

Result<Evaluator::Flow> Evaluator::ExecuteIf(const Statement& s, const ScopeRef& scope) {
  for (const Branch& branch : s.branches) {
    if (branch.condition != nullptr) {
      FORETOKEN_TRY(const Value condition, Evaluate(*branch.condition, scope));
      if (!IsTrue(condition)) continue;
    }
    return ExecuteBlock(branch.body, scope);
  }
  return Flow::kOn;
}

Result<Values> Evaluator::LoopItems(const ForStatement& loop, const Value& items,
                                    const ScopeRef& scope) {
  FORETOKEN_TRY(Values all, ItemsOf(budget_, items));
  if (loop.condition == nullptr) return all;
  Values chosen;
  for (Value& item : all) {
    const ScopeRef inner = Inner(scope);
    FORETOKEN_CHECK_OK(Assign(loop.target, item, inner));
    FORETOKEN_TRY(const Value condition, Evaluate(*loop.condition, inner));
    if (IsTrue(condition)) chosen.push_back(std::move(item));
  }
  return chosen;
}

Result<Evaluator::Flow> Evaluator::ExecuteFor(const ForStatement& statement, const Value& items,
                                              const ScopeRef& scope, int depth0) {
  FORETOKEN_TRY(Values chosen, LoopItems(statement, items, scope));
  if (chosen.empty()) return ExecuteBlock(statement.otherwise, Inner(scope));
  const int depth = 1 + DepthOf(chosen);
  budget_.SeeValueDepth(depth);
  const std::shared_ptr<Loop> loop =
      Shared(Loop{.items = std::move(chosen), .depth = depth, .depth0 = depth0});
  if (statement.recursive) {
    loop->statement = &statement;
    loop->scope = scope;
    environment_.scopes.push_back(scope);
  }
  // As compiled by Jinja, `else` also runs where no iteration reaches the end of the body.
  bool any_ended = false;
  for (loop->index0 = 0; loop->index0 < loop->length(); ++loop->index0) {
    const ScopeRef inner = Inner(scope);
    inner->Set("loop", Value(loop));
    FORETOKEN_CHECK_OK(Assign(statement.target, loop->Neighbour(0), inner));
    FORETOKEN_TRY(const Flow flow, ExecuteBlock(statement.body, inner));
    any_ended = any_ended || flow == Flow::kOn;
    if (flow == Flow::kBreak) break;
  }
  return any_ended ? Flow::kOn : ExecuteBlock(statement.otherwise, Inner(scope));
}

Status Evaluator::Assign(const Target& target, const Value& value, const ScopeRef& scope) {
  if (target.tuple) {
    FORETOKEN_TRY(const Values items, ItemsOf(budget_, value));
    if (items.size() != target.parts.size())
      return InvalidArgument(
          fmt::format("{} values to unpack (expected {}, got {})",
                      items.size() < target.parts.size() ? "not enough" : "too many",
                      target.parts.size(), items.size()));
    for (std::size_t i = 0; i < items.size(); ++i)
      FORETOKEN_CHECK_OK(Assign(target.parts[i], items[i], scope));
    return {};
  }
  if (target.attribute.empty()) {
    scope->Set(target.name, value);
    return {};
  }
  const Value* const found = scope->Find(budget_, target.name);
  const auto* const space = found == nullptr ? nullptr : found->name_space();
  if (space == nullptr) return InvalidArgument("cannot assign attribute on non-namespace object");
  (*space)->attributes.Set(target.attribute, value);
  return {};
}

}  // namespace foretoken::text::jinja
