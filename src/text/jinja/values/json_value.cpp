// SPDX-License-Identifier: Apache-2.0
// Makes values of JSON.
#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "text/jinja/values/json_text.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kMostDepth = 90;
constexpr std::size_t kMemoryPart = 4;  // of what is left, for the text as JSON beside its values

tl::unexpected<Error> NotRead(Budget& budget, const JsonError& error) {
  if (error.kind == JsonError::Kind::kMemory)
    FORETOKEN_CHECK_OK(budget.Admit(budget.memory_left() + 1));
  const bool deep = error.kind == JsonError::Kind::kDepth;
  return InvalidArgument(
      deep ? fmt::format("lists and objects are more than {} inside each other; give JSON",
                         kMostDepth)
           : fmt::format("it is not JSON (at byte {}); give JSON", error.byte));
}

// Nothing: it has an integer that is beyond 64 bits.
std::optional<Value> NumberOf(const Json& json) {
  if (const auto integer = json.integer()) return Value(*integer);
  const bool whole = json.source().find_first_of(".eE") == std::string_view::npos;
  return whole ? std::nullopt : std::optional(Value(json.number()));
}

Result<Value> ValueOf(Budget& budget, const Json& json, bool from_input) {
  if (json.is_null()) return Value(None{});
  if (json.is_boolean()) return Value(json.boolean());
  if (json.is_string()) return TextValue(budget, json.text(), from_input);
  if (json.is_number()) {
    if (auto number = NumberOf(json)) return *std::move(number);
    return InvalidArgument("an integer is beyond 64 bits; give JSON");
  }
  if (json.is_array()) {
    Values items;
    for (const Json& element : json) {
      FORETOKEN_TRY(Value item, ValueOf(budget, element, from_input));
      items.push_back(std::move(item));
    }
    return ListValue(budget, std::move(items));
  }
  DictionaryBuilder members(budget);
  for (const auto& [name, member] : json.members()) {
    FORETOKEN_TRY(Value value, ValueOf(budget, member, from_input));
    members.Set(TextValue(budget, name, from_input), std::move(value));
  }
  return members.Take();
}

}  // namespace

Result<Value> FromJson(Budget& budget, std::string_view json, bool from_input) {
  return WithinMemory(budget, [&]() -> Result<Value> {
    const auto read = ReadJson(json, {.most_depth = kMostDepth,
                                      .most_memory = budget.memory_left() / kMemoryPart,
                                      .keeps_text = true});
    if (!read) return NotRead(budget, read.error());
    auto value = ValueOf(budget, *read, from_input);
    FORETOKEN_CHECK_OK(budget.status());
    return value;
  });
}

}  // namespace foretoken::text::jinja
