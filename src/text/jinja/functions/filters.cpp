// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/filters.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::text::jinja {
namespace {

const std::vector<FilterRow>& Rows() {
  static const std::vector<FilterRow> rows = [] {
    std::vector<FilterRow> all;
    for (const auto& some : {TextFilters(), SequenceFilters(), SelectionFilters(), NumberFilters()})
      all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return rows;
}

const FilterRow* Find(std::string_view name) {
  const auto row =
      std::lower_bound(Rows().begin(), Rows().end(), name,
                       [](const FilterRow& r, std::string_view n) { return r.name < n; });
  return row != Rows().end() && row->name == name ? &*row : nullptr;
}

// Filters that Python runs when their result is read.
bool IsLazy(std::string_view name) {
  constexpr std::string_view kLazy[] = {"batch",  "items",      "map",   "reject", "rejectattr",
                                        "select", "selectattr", "slice", "unique"};
  return std::find(std::begin(kLazy), std::end(kLazy), name) != std::end(kLazy);
}

}  // namespace

bool IsFilter(std::string_view name) {
  return Find(name) != nullptr;
}

Result<Value> CallFilter(Environment& environment, std::string_view name, const Value& input,
                         const Arguments& arguments) {
  environment.budget.Spend();
  FORETOKEN_CHECK_OK(environment.budget.status());
  if (const FilterRow* const row = Find(name)) {
    auto result = row->call({environment, name, input, arguments});
    const bool later = !result && IsLazy(name) && !environment.budget.over();
    return later ? FailingGenerator(result.error()) : result;
  }
  return Fail(ErrorCode::kUnsupported,
              fmt::format("there is no filter '{}'; use another", Shown(name)));
}

}  // namespace foretoken::text::jinja
