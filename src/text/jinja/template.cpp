// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/template.h"

#include "text/jinja/evaluator.h"
#include "text/jinja/syntax/parser.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

// Takes what can change apart. Everything that is cleared here is still owned by a list of the
// environment, so no destructor runs deep.
void Empty(Environment& environment) {
  for (const auto& space : environment.namespaces) {
    const auto attributes = std::exchange(space->attributes, {});
  }
  for (const auto& loop : environment.changing_loops) {
    const auto values = std::exchange(loop->last_changed, {});
  }
  for (const auto& scope : environment.scopes) {
    const auto variables = std::exchange(scope->variables, {});
  }
}

}  // namespace

struct Template::Tree {
  Block block;
};

Result<Template> Template::Parse(std::string_view source) {
  FORETOKEN_TRY(Block block, jinja::Parse(source));
  return Template(std::make_shared<const Tree>(Tree{std::move(block)}));
}

Result<Characters> Template::Render(Budget& budget, const std::vector<Variable>& variables,
                                    const std::tm& now) const {
  Environment environment{.budget = budget, .now = now};
  auto text = WithinMemory(budget, [&]() -> Result<Characters> {
    const ScopeRef context = Shared(Scope{});
    for (const Variable& variable : variables) {
      budget.Spend(variable.name.size());
      context->Set(variable.name, variable.value);
    }
    return Evaluator(environment).Render(tree_->block, Shared(Scope{.parent = context}));
  });
  Empty(environment);
  return text;
}

}  // namespace foretoken::text::jinja
