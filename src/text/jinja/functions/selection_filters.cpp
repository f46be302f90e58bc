// SPDX-License-Identifier: Apache-2.0
// The filters that apply a filter or a test to each element.
#include <fmt/format.h>

#include "text/jinja/functions/attributes.h"
#include "text/jinja/functions/filters.h"
#include "text/jinja/functions/predicates.h"

namespace foretoken::text::jinja {
namespace {

Result<Value> MapAttribute(const FilterCall& call, const Values& items) {
  FORETOKEN_TRY(const Bound bound, Bound::Make("map", call.arguments, {"attribute", "default"}, 1));
  const bool has_default = bound.Has(1) && !bound[1].IsNone();
  Values out;
  for (const Value& item : items) {
    FORETOKEN_CHECK_OK(call.budget().status());
    FORETOKEN_TRY(Value value, PathOf(call.environment, item, bound[0]));
    out.push_back(value.IsUndefined() && has_default ? bound[1] : std::move(value));
  }
  return Generator(call, std::move(out));
}

Result<std::string> NameAt(const FilterCall& call, std::size_t i, std::string_view what) {
  const Values& positional = call.arguments.positional;
  if (i < positional.size() && positional[i].IsText()) return ToUtf8(positional[i].text());
  return InvalidArgument(fmt::format("{} requires the name of a {}", call.name, what));
}

Result<Value> Map(const FilterCall& call) {
  if (!IsTrue(call.input)) return Generator(call, {});
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  const bool by_attribute = call.arguments.positional.empty() && !call.arguments.named.empty();
  if (by_attribute) return MapAttribute(call, items);
  FORETOKEN_TRY(const std::string name, NameAt(call, 0, "filter"));
  Arguments rest = call.arguments;
  rest.positional.erase(rest.positional.begin());
  Values out;
  for (const Value& item : items) {
    FORETOKEN_TRY(Value value, CallFilter(call.environment, name, item, rest));
    out.push_back(std::move(value));
  }
  return Generator(call, std::move(out));
}

// select, reject, selectattr, rejectattr.
Result<Value> Select(const FilterCall& call) {
  const bool by_attribute = call.name.ends_with("attr");
  const bool wanted = call.name.starts_with("select");
  const std::size_t offset = by_attribute ? 1 : 0;
  Arguments rest = call.arguments;
  Value attribute;
  std::string test;
  if (!IsTrue(call.input)) return Generator(call, {});
  if (by_attribute) {
    if (rest.positional.empty()) return InvalidArgument("Missing parameter for attribute name");
    attribute = rest.positional.front();
  }
  if (rest.positional.size() > offset) {
    FORETOKEN_TRY(test, NameAt(call, offset, "test"));
    rest.positional.erase(rest.positional.begin(),
                          rest.positional.begin() + static_cast<std::ptrdiff_t>(offset + 1));
  }
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  Values out;
  for (const Value& item : items) {
    FORETOKEN_CHECK_OK(call.budget().status());
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, attribute));
    bool holds = IsTrue(value);
    if (!test.empty()) {
      FORETOKEN_TRY(holds, TestHolds(call.environment, test, value, rest));
    }
    if (holds == wanted) out.push_back(item);
  }
  return Generator(call, std::move(out));
}

}  // namespace

std::vector<FilterRow> SelectionFilters() {
  return {{"map", Map},
          {"select", Select},
          {"reject", Select},
          {"selectattr", Select},
          {"rejectattr", Select}};
}

}  // namespace foretoken::text::jinja
