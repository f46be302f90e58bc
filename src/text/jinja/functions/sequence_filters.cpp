// SPDX-License-Identifier: Apache-2.0
// The filters of lists and dictionaries.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/attributes.h"
#include "text/jinja/functions/filters.h"
#include "text/jinja/values/arithmetic.h"
#include "text/jinja/values/comparison.h"

namespace foretoken::text::jinja {
namespace {

Value Tuple(const FilterCall& call, Values items) {
  return ListValue(call.budget(), std::move(items), SequenceKind::kTuple);
}

Value IgnoringCase(const FilterCall& call, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.IsText()) return value;
  return TextValue(call.budget(), Lower(value.text()));
}

Result<Value> Length(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  if (const auto length = LengthOf(call.input)) return Value(static_cast<std::int64_t>(*length));
  return InvalidArgument(fmt::format("object of type '{}' has no len()", TypeName(call.input)));
}

Result<Value> MakeList(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  FORETOKEN_TRY(Values items, ItemsOf(call.budget(), call.input));
  return ListValue(call.budget(), std::move(items));
}

Result<Value> First(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  const Sequence* const sequence = call.input.sequence();
  if (sequence != nullptr && sequence->error != nullptr) return sequence->error->Raised();
  if (sequence != nullptr && sequence->IsGenerator())
    return sequence->n_read < sequence->items.size()
               ? sequence->items[sequence->n_read++]
               : Value::Missing("No first item, sequence was empty.");
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  return items.empty() ? Value::Missing("No first item, sequence was empty.") : items.front();
}

Result<Value> Last(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  const Sequence* const sequence = call.input.sequence();
  if (call.input.IsUndefined() || (sequence != nullptr && sequence->IsGenerator()))
    return InvalidArgument(fmt::format("'{}' object is not reversible", TypeName(call.input)));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  return items.empty() ? Value::Missing("No last item, sequence was empty.") : items.back();
}

Result<Value> Reverse(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  if (call.input.IsText()) {
    const Characters& text = call.input.text();
    return TextValue(call.budget(), Characters(text.rbegin(), text.rend()));
  }
  const Sequence* const sequence = call.input.sequence();
  const bool listed = call.input.IsUndefined() || (sequence != nullptr && sequence->IsGenerator());
  FORETOKEN_TRY(Values items, ItemsOf(call.budget(), call.input));
  std::reverse(items.begin(), items.end());
  return listed ? ListValue(call.budget(), std::move(items)) : Generator(call, std::move(items));
}

Result<Value> Items(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  if (call.input.IsUndefined()) return Generator(call, {});
  const Dictionary* const dictionary = call.input.dictionary();
  if (dictionary == nullptr) return InvalidArgument("Can only get item pairs from a mapping.");
  Values items;
  for (const auto& [key, value] : dictionary->items) {
    FORETOKEN_CHECK_OK(call.budget().status());
    items.push_back(Tuple(call, {key, value}));
  }
  return Generator(call, std::move(items));
}

Result<Value> DictSort(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"case_sensitive", "by", "reverse"}));
  const Characters key_name = U"key";
  FORETOKEN_TRY(const Characters* const by, bound.Text(1, &key_name));
  const bool by_key = SameText(*by, key_name);
  if (!by_key && !SameText(*by, U"value"))
    return InvalidArgument("You can only sort by either \"key\" or \"value\"");
  const Dictionary* const dictionary = call.input.dictionary();
  if (dictionary == nullptr)
    return InvalidArgument(
        fmt::format("'{}' object has no attribute 'items'", TypeName(call.input)));
  Values items, keys;
  for (const auto& [key, value] : dictionary->items) {
    items.push_back(Tuple(call, {key, value}));
    keys.push_back(IgnoringCase(call, by_key ? key : value, bound.IsTrueAt(0)));
  }
  FORETOKEN_CHECK_OK(SortBy(call.budget(), keys, bound.IsTrueAt(2), items));
  return ListValue(call.budget(), std::move(items));
}

// What elements are compared by: the attributes of a text with commas, or one attribute.
Result<Value> SortKey(const FilterCall& call, const Value& item, const Value& attribute,
                      bool case_sensitive) {
  if (!attribute.IsText()) {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, attribute));
    return IgnoringCase(call, value, case_sensitive);
  }
  Values keys;
  for (CharactersView rest = attribute.text();;) {
    const std::size_t comma = FindText(rest, U",");
    const Value path = TextValue(call.budget(), Characters(rest.substr(0, comma)));
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, path));
    keys.push_back(IgnoringCase(call, value, case_sensitive));
    if (comma == kNowhere) break;
    rest.remove_prefix(comma + 1);
  }
  return ListValue(call.budget(), std::move(keys));
}

Result<Values> KeysOf(const FilterCall& call, const Values& items, const Value& attribute,
                      bool case_sensitive) {
  Values keys;
  for (const Value& item : items) {
    FORETOKEN_TRY(Value key, SortKey(call, item, attribute, case_sensitive));
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<Value> Sort(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"reverse", "case_sensitive", "attribute"}));
  FORETOKEN_TRY(Values items, ItemsOf(call.budget(), call.input));
  FORETOKEN_TRY(const Values keys, KeysOf(call, items, bound[2], bound.IsTrueAt(1)));
  FORETOKEN_CHECK_OK(SortBy(call.budget(), keys, bound.IsTrueAt(0), items));
  return ListValue(call.budget(), std::move(items));
}

Result<Value> Unique(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"case_sensitive", "attribute"}));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  DictionaryBuilder seen(call.budget());
  Values unique;
  for (const Value& item : items) {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, bound[1]));
    const Value key = IgnoringCase(call, value, bound.IsTrueAt(0));
    if (!IsHashable(key))
      return InvalidArgument(fmt::format("unhashable type: '{}'", TypeName(key)));
    FORETOKEN_CHECK_OK(SpendComparison(call.budget(), key, key));
    if (seen.Add(key)) unique.push_back(item);
  }
  return Generator(call, std::move(unique));
}

Result<Value> MinOrMax(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"case_sensitive", "attribute"}));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  if (items.empty()) return Value::Missing("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  Value best_key;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, items[i], bound[1]));
    const Value key = IgnoringCase(call, value, bound.IsTrueAt(0));
    if (i > 0) {
      const Operator op = call.name == "min" ? Operator::kLess : Operator::kGreater;
      FORETOKEN_TRY(const bool better, Holds(call.budget(), op, key, best_key));
      if (!better) continue;
    }
    best = i;
    best_key = key;
  }
  return items[best];
}

Result<Value> Sum(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"attribute", "start"}));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  Value sum = bound.Has(1) ? bound[1] : Value(std::int64_t{0});
  if (sum.IsText()) return InvalidArgument("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items) {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, bound[0]));
    FORETOKEN_TRY(sum, Apply(call.budget(), Operator::kAdd, sum, value));
    FORETOKEN_CHECK_OK(call.budget().status());
  }
  return sum;
}

Result<Value> Batch(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"linecount", "fill_with"}, 1));
  FORETOKEN_TRY(const std::int64_t size, bound.Integer(0, 0));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  Values batches, batch;
  for (const Value& item : items) {
    if (static_cast<std::int64_t>(batch.size()) == size)
      batches.push_back(ListValue(call.budget(), std::exchange(batch, {})));
    batch.push_back(item);
  }
  if (!batch.empty()) {
    const std::int64_t missing = size - static_cast<std::int64_t>(batch.size());
    if (bound.Has(1) && !bound[1].IsNone() && missing > 0) {
      FORETOKEN_CHECK_OK(call.budget().Admit(static_cast<std::size_t>(missing), sizeof(Value)));
      batch.insert(batch.end(), static_cast<std::size_t>(missing), bound[1]);
    }
    batches.push_back(ListValue(call.budget(), std::move(batch)));
  }
  return Generator(call, std::move(batches));
}

Result<Value> Slice(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"slices", "fill_with"}, 1));
  FORETOKEN_TRY(const std::int64_t slices, bound.Integer(0, 0));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  if (slices == 0) return InvalidArgument("integer division or modulo by zero");
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(0, slices));
  FORETOKEN_CHECK_OK(call.budget().Admit(n, 128));
  const std::size_t each = n == 0 ? 0 : items.size() / n, extra = n == 0 ? 0 : items.size() % n;
  Values out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t end = begin + each + (i < extra ? 1 : 0);
    Values part(items.begin() + static_cast<std::ptrdiff_t>(begin),
                items.begin() + static_cast<std::ptrdiff_t>(end));
    if (bound.Has(1) && !bound[1].IsNone() && i >= extra) part.push_back(bound[1]);
    out.push_back(ListValue(call.budget(), std::move(part)));
    begin = end;
  }
  return Generator(call, std::move(out));
}

Result<Value> GroupBy(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments,
                                               {"attribute", "default", "case_sensitive"}, 1));
  FORETOKEN_TRY(Values items, ItemsOf(call.budget(), call.input));
  const auto key_of = [&](const Value& item) -> Result<Value> {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, item, bound[0]));
    return value.IsUndefined() && bound.Has(1) && !bound[1].IsNone() ? bound[1] : value;
  };
  Values keys;
  for (const Value& item : items) {
    FORETOKEN_TRY(const Value key, key_of(item));
    keys.push_back(IgnoringCase(call, key, bound.IsTrueAt(2)));
  }
  const Values unsorted = keys;
  FORETOKEN_CHECK_OK(SortBy(call.budget(), unsorted, false, items));
  FORETOKEN_CHECK_OK(SortBy(call.budget(), unsorted, false, keys));
  Values groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin;
    while (end < items.size() && SpendComparison(call.budget(), keys[begin], keys[end]) &&
           AreEqual(keys[begin], keys[end]))
      ++end;
    FORETOKEN_CHECK_OK(call.budget().status());
    FORETOKEN_TRY(const Value key, key_of(items[begin]));
    Values members(items.begin() + static_cast<std::ptrdiff_t>(begin),
                   items.begin() + static_cast<std::ptrdiff_t>(end));
    groups.push_back(Tuple(call, {key, ListValue(call.budget(), std::move(members))}));
    begin = std::max(end, begin + 1);
  }
  return ListValue(call.budget(), std::move(groups));
}

}  // namespace

std::vector<FilterRow> SequenceFilters() {
  return {{"length", Length}, {"count", Length},    {"list", MakeList}, {"first", First},
          {"last", Last},     {"reverse", Reverse}, {"items", Items},   {"dictsort", DictSort},
          {"sort", Sort},     {"unique", Unique},   {"min", MinOrMax},  {"max", MinOrMax},
          {"sum", Sum},       {"batch", Batch},     {"slice", Slice},   {"groupby", GroupBy}};
}

}  // namespace foretoken::text::jinja
