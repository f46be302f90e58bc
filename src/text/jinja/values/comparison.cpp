// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace foretoken::text::jinja {
namespace {

bool SequencesAreEqual(const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.IsGenerator() || a.kind == SequenceKind::kValues) return false;
  return a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), AreSame);
}

bool DictionariesAreEqual(const Dictionary& a, const Dictionary& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& member) {
    const Value* const other = b.Find(member.first);
    return other != nullptr && AreSame(member.second, *other);
  });
}

int NumberOrder(const Value& a, const Value& b) {
  if (a.integer() && b.integer())
    return *a.integer() < *b.integer() ? -1 : *a.integer() > *b.integer() ? 1 : 0;
  const double x = a.number(), y = b.number();
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

// Lists and tuples: their order is that of the first elements that differ.
bool AreOrdered(const Value& a, const Value& b) {
  const Sequence *const x = a.sequence(), *const y = b.sequence();
  return x != nullptr && y != nullptr && x->kind == y->kind &&
         (x->kind == SequenceKind::kList || x->kind == SequenceKind::kTuple);
}

// The two values whose order is that of a and b: those that differ first, in lists in lists too. If
// that is a list and a longer one that begins with it, these; {} where there is no difference. One
// walk: what is equal is compared once.
using Difference = std::pair<const Value*, const Value*>;
Difference FirstDifference(const Value& a, const Value& b, bool whole = true) {
  if (!AreOrdered(a, b)) {
    if (!whole && AreSame(a, b)) return {};
    return {&a, &b};
  }
  const Values &x = a.sequence()->items, &y = b.sequence()->items;
  if (&x == &y) return {};
  const std::size_t n = std::min(x.size(), y.size());
  for (std::size_t i = 0; i < n; ++i)
    if (const Difference found = FirstDifference(x[i], y[i], false); found.first != nullptr)
      return found;
  if (x.size() == y.size()) return {};
  return {&a, &b};
}

}  // namespace

bool AreEqual(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) return NumberOrder(a, b) == 0;
  if (a.IsText() && b.IsText()) return SameText(a.text(), b.text());
  if (a.IsNone() || b.IsNone()) return a.IsNone() && b.IsNone();
  if (a.IsUndefined() || b.IsUndefined()) return a.IsUndefined() && b.IsUndefined();
  if (a.sequence() != nullptr && b.sequence() != nullptr)
    return SequencesAreEqual(*a.sequence(), *b.sequence());
  if (a.dictionary() != nullptr && b.dictionary() != nullptr)
    return DictionariesAreEqual(*a.dictionary(), *b.dictionary());
  if (a.IsNumber() || a.IsText() || b.IsNumber() || b.IsText()) return false;
  return a.SameAs(b);
}

bool AreSame(const Value& a, const Value& b) {
  if (a.IsFloat() && b.IsFloat() && std::isnan(a.number()) && std::isnan(b.number())) return true;
  return AreEqual(a, b);
}

Status SpendComparison(Budget& budget, const Value& a, const Value& b) {
  budget.Spend(std::min(WeightOf(a), WeightOf(b)));
  return budget.status();
}

Result<int> Compare(const Value& a, const Value& b, std::string_view sign) {
  const auto [x, y] = FirstDifference(a, b);
  if (x == nullptr) return 0;
  if (x->IsUndefined()) return InvalidArgument(x->why());
  if (y->IsUndefined()) return InvalidArgument(y->why());
  if (x->IsNumber() && y->IsNumber()) return NumberOrder(*x, *y);
  if (x->IsText() && y->IsText()) return CompareText(x->text(), y->text());
  if (!AreOrdered(*x, *y))
    return InvalidArgument(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                                       sign, TypeName(*x), TypeName(*y)));
  return x->sequence()->items.size() < y->sequence()->items.size() ? -1 : 1;
}

Result<bool> Contains(Budget& budget, const Value& container, const Value& value) {
  if (container.IsText()) {
    budget.Spend(container.text().size());
    if (value.IsText()) return FindText(container.text(), value.text()) != kNowhere;
    if (value.IsUndefined()) return InvalidArgument(value.why());
    return InvalidArgument(
        fmt::format("'in <string>' requires string as left operand, not {}", TypeName(value)));
  }
  if (const Dictionary* const dictionary = container.dictionary()) {
    if (!IsHashable(value))
      return InvalidArgument(fmt::format("unhashable type: '{}'", TypeName(value)));
    budget.Spend(WeightOf(value));
    return dictionary->Find(value) != nullptr;
  }
  if (const Sequence* const sequence = container.sequence()) {
    if (sequence->error != nullptr) return sequence->error->Raised();
    std::size_t& at = sequence->n_read;  // a generator is read up to what is found
    if (!sequence->IsGenerator()) at = 0;
    while (at < sequence->items.size()) {
      FORETOKEN_CHECK_OK(SpendComparison(budget, sequence->items[at], value));
      if (AreEqual(sequence->items[at++], value)) return true;
    }
    return false;
  }
  if (container.IsUndefined()) return false;
  return InvalidArgument(fmt::format("argument of type '{}' is not iterable", TypeName(container)));
}

Status SortBy(Budget& budget, const Values& keys, bool reverse, Values& items) {
  List<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<Error> error;
  // After an error every pair counts as equal, so that the sort ends.
  const auto less = [&](std::size_t a, std::size_t b) {
    if (error || !SpendComparison(budget, keys[a], keys[b])) return false;
    const auto sign = reverse ? Compare(keys[b], keys[a]) : Compare(keys[a], keys[b]);
    if (!sign) error = sign.error();
    return sign && *sign == -1;
  };
  std::stable_sort(order.begin(), order.end(), less);
  if (error) return Fail(*std::move(error));
  FORETOKEN_CHECK_OK(budget.status());
  Values sorted;
  sorted.reserve(items.size());
  for (const std::size_t i : order) sorted.push_back(items[i]);
  items = std::move(sorted);
  return {};
}

}  // namespace foretoken::text::jinja
