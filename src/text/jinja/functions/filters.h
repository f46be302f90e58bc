// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/filters.h: `value | name(arguments)`.
#pragma once

#include "text/jinja/functions/arguments.h"
#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

// Errors: those of the filter; there is none of this name.
[[nodiscard]] Result<Value> CallFilter(Environment& environment, std::string_view name,
                                       const Value& input, const Arguments& arguments);
bool IsFilter(std::string_view name);

// One use of a filter.
struct FilterCall {
  Environment& environment;
  std::string_view name;
  const Value& input;
  const Arguments& arguments;

  Budget& budget() const { return environment.budget; }
};

// What filters return that Python writes as generators.
inline Value Generator(const FilterCall& call, Values items) {
  return ListValue(call.budget(), std::move(items), SequenceKind::kGenerator);
}

struct FilterRow {
  std::string_view name;
  Result<Value> (*call)(const FilterCall&);
};
// The rows of each file of filters.
std::vector<FilterRow> TextFilters();
std::vector<FilterRow> SequenceFilters();
std::vector<FilterRow> SelectionFilters();
std::vector<FilterRow> NumberFilters();

}  // namespace foretoken::text::jinja
