// SPDX-License-Identifier: Apache-2.0
// text/jinja/template.h: a Jinja template as model files have it, rendered as Python's Jinja 3.1
// does with the settings of transformers (docs/adr/0018-templates-are-interpreted.md).
//
// Immutable; any thread may use it. The time, the depth, the memory and the output of one rendering
// are bounded (values/budget.h).
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

// Where several have one name, the last one counts.
struct Variable {
  std::string name;
  Value value;
};

class Template {
 public:
  // Errors: "line N: ..." where the text is not Jinja; kUnsupported for statements that load other
  // templates; kTooLarge.
  [[nodiscard]] static Result<Template> Parse(std::string_view source);

  // The variables' values were made with `budget`. `now` is what strftime_now() writes. Errors:
  // "line N: ...", with the code kTooLarge where a bound of the budget is exceeded.
  [[nodiscard]] Result<Characters> Render(Budget& budget, const std::vector<Variable>& variables,
                                          const std::tm& now) const;

 private:
  struct Tree;
  explicit Template(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

}  // namespace foretoken::text::jinja
