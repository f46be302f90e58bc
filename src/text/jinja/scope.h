// SPDX-License-Identifier: Apache-2.0
// text/jinja/scope.h: the variables of a template, of a loop's body, of a macro.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "text/jinja/syntax/node.h"
#include "text/jinja/values/name_table.h"

namespace foretoken::text::jinja {

struct Scope {
  const Value* Find(Budget& budget, std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
      if (const Value* const found = scope->variables.Find(name)) return found;
      budget.Spend();
    }
    return nullptr;
  }
  void Set(std::string_view name, Value value) { variables.Set(name, std::move(value)); }

  std::shared_ptr<Scope> parent;
  NameTable variables = {};
};
using ScopeRef = std::shared_ptr<Scope>;

// A macro, or what caller() of a call block renders.
struct Macro {
  const MacroStatement* statement;
  ScopeRef scope;  // where it was defined
};

}  // namespace foretoken::text::jinja
