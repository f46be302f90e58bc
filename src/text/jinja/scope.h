// SPDX-License-Identifier: Apache-2.0
// text/jinja/scope.h: the variables of a template, of a loop's body, of a macro.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/syntax/node.h"
#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct Scope {
  explicit Scope(Budget& budget, std::shared_ptr<Scope> outer = nullptr)
      : parent(std::move(outer)), held(budget, 128) {}

  const Value* Find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
      for (const auto& [key, value] : scope->variables)
        if (key == name) return &value;
    return nullptr;
  }
  void Set(std::string_view name, Value value) {
    for (auto& [key, old] : variables)
      if (key == name) {
        old = std::move(value);
        return;
      }
    variables.emplace_back(name, std::move(value));
  }

  std::vector<std::pair<std::string, Value>> variables;
  std::shared_ptr<Scope> parent;
  Held held;
};
using ScopeRef = std::shared_ptr<Scope>;

// A macro, or what caller() of a call block renders.
struct Macro {
  const MacroStatement* statement;
  ScopeRef scope;  // where it was defined
};

}  // namespace foretoken::text::jinja
