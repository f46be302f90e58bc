// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/values/comparison.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::string_view kTextMethods[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kListChanges[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kDictionaryMethods[] = {"copy",  "fromkeys", "get",
                                                   "items", "keys",     "values"};
constexpr std::string_view kDictionaryChanges[] = {"clear", "pop", "popitem", "setdefault",
                                                   "update"};

template <std::size_t n>
bool IsOneOf(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsList(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind == SequenceKind::kList;
}

bool IsTuple(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind == SequenceKind::kTuple;
}

Result<Value> CallSequenceMethod(Environment& environment, const Value& self, std::string_view name,
                                 const Arguments& arguments) {
  const Sequence& sequence = *self.sequence();
  if (name == "copy") return self;
  FORETOKEN_TRY(const Bound bound, Bound::Make(name, arguments, {"value"}, 1));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    FORETOKEN_CHECK_OK(SpendComparison(environment.budget, sequence.items[i], bound[0]));
    if (!AreEqual(sequence.items[i], bound[0])) continue;
    if (name == "index") return Value(static_cast<std::int64_t>(i));
    ++count;
  }
  if (name == "count") return Value(count);
  return InvalidArgument(fmt::format("{}.index(x): x not in {}", TypeName(self), TypeName(self)));
}

Result<Value> CallDictionaryMethod(Environment& environment, const Value& self,
                                   std::string_view name, const Arguments& arguments) {
  const Dictionary& dictionary = *self.dictionary();
  if (name == "get") {
    FORETOKEN_TRY(const Bound bound, Bound::Make(name, arguments, {"key", "default"}, 1));
    if (!IsHashable(bound[0]))
      return InvalidArgument(fmt::format("unhashable type: '{}'", TypeName(bound[0])));
    environment.budget.Spend(2 * WeightOf(bound[0]));
    const Value* const found = dictionary.Find(bound[0]);
    return found != nullptr ? *found : bound.Has(1) ? bound[1] : Value(None{});
  }
  FORETOKEN_CHECK_OK(Bound::Make(name, arguments, {}));
  if (name == "copy") return self;
  Values items;
  for (const auto& [key, value] : dictionary.items) {
    FORETOKEN_CHECK_OK(environment.budget.status());
    if (name == "items")
      items.push_back(ListValue(environment.budget, {key, value}, SequenceKind::kTuple));
    else
      items.push_back(name == "keys" ? key : value);
  }
  return ListValue(environment.budget, std::move(items),
                   name == "items"  ? SequenceKind::kItems
                   : name == "keys" ? SequenceKind::kKeys
                                    : SequenceKind::kValues);
}

Result<Value> CallLoopMethod(Environment& environment, const std::shared_ptr<Loop>& shared,
                             std::string_view name, const Arguments& arguments) {
  Loop& loop = *shared;
  const Values& values = arguments.positional;
  if (name == "cycle") {
    if (values.empty()) return InvalidArgument("no items for cycling given");
    return values[static_cast<std::size_t>(loop.index0) % values.size()];
  }
  bool same = loop.last_changed && loop.last_changed->size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i) {
    FORETOKEN_CHECK_OK(SpendComparison(environment.budget, values[i], (*loop.last_changed)[i]));
    same = AreEqual(values[i], (*loop.last_changed)[i]);
  }
  if (!loop.last_changed) environment.changing_loops.push_back(shared);
  if (!same) loop.last_changed = values;
  return Value(!same);
}

}  // namespace

bool HasMethod(const Value& value, std::string_view name) {
  if (value.IsText()) return IsOneOf(name, kTextMethods);
  if (value.dictionary() != nullptr)
    return IsOneOf(name, kDictionaryMethods) || IsOneOf(name, kDictionaryChanges);
  if (value.loop() != nullptr) return name == "cycle" || name == "changed";
  const bool counts = name == "count" || name == "index";
  if (IsList(value)) return counts || name == "copy" || IsOneOf(name, kListChanges);
  return IsTuple(value) && counts;
}

Result<Value> CallMethod(Environment& environment, const Value& self, std::string_view name,
                         const Arguments& arguments) {
  if (self.IsText()) return CallTextMethod(environment, *self.text_object(), name, arguments);
  const bool changes = (IsList(self) && IsOneOf(name, kListChanges)) ||
                       (self.dictionary() != nullptr && IsOneOf(name, kDictionaryChanges));
  if (changes)
    return InvalidArgument(
        fmt::format("access to attribute '{}' of '{}' object is unsafe, because values cannot be "
                    "changed",
                    name, TypeName(self)));
  if (self.loop() != nullptr) return CallLoopMethod(environment, *self.loop(), name, arguments);
  if (self.dictionary() != nullptr && name != "fromkeys")
    return CallDictionaryMethod(environment, self, name, arguments);
  if (self.sequence() != nullptr) return CallSequenceMethod(environment, self, name, arguments);
  return Fail(ErrorCode::kUnsupported,
              fmt::format("the method '{}' of '{}' is not supported; write it without", name,
                          TypeName(self)));
}

}  // namespace foretoken::text::jinja
