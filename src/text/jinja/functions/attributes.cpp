// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/functions/methods.h"
#include "text/jinja/values/loop.h"
#include "text/jinja/values/name_table.h"

namespace foretoken::text::jinja {
namespace {

std::string ObjectName(const Value& value) {
  return value.IsNone() ? "None" : TypeName(value) + " object";
}

Value NoAttribute(const Value& value, std::string_view name) {
  return Value::Missing(fmt::format("'{}' has no attribute '{}'", ObjectName(value), Shown(name)));
}

std::optional<Value> LoopAttribute(const Loop& loop, std::string_view name) {
  const std::int64_t index0 = loop.index0, length = loop.length();
  if (name == "index") return Value(index0 + 1);
  if (name == "index0") return Value(index0);
  if (name == "revindex") return Value(length - index0);
  if (name == "revindex0") return Value(length - index0 - 1);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(loop.last());
  if (name == "length") return Value(length);
  if (name == "depth") return Value(std::int64_t{loop.depth0} + 1);
  if (name == "depth0") return Value(std::int64_t{loop.depth0});
  if (name == "previtem") return loop.Neighbour(-1);
  if (name == "nextitem") return loop.Neighbour(1);
  return std::nullopt;
}

// What getattr() finds, in the sandbox of Jinja.
Result<std::optional<Value>> PythonAttribute(const Value& value, std::string_view name) {
  if (value.IsUndefined()) return InvalidArgument(value.why());
  if (name.starts_with('_')) return std::nullopt;
  if (const auto* const space = value.name_space()) {
    const Value* const found = (*space)->attributes.Find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (const auto* const loop = value.loop())
    if (auto attribute = LoopAttribute(**loop, name)) return attribute;
  if (!HasMethod(value, name)) return std::nullopt;
  return Value(std::shared_ptr<const Callable>(
      Shared(Callable{Callable::Kind::kMethod, Utf8Text(name), value})));
}

// The element at an index, which may count from the end.
const Value* ElementAt(const Values& items, std::int64_t index) {
  const auto n = static_cast<std::int64_t>(items.size());
  if (index < 0) index += n;
  return index >= 0 && index < n ? &items[static_cast<std::size_t>(index)] : nullptr;
}

// What value[key] gives in Python; nothing where it raises an error.
std::optional<Value> Subscript(Budget& budget, const Value& value, const Value& key) {
  if (const Dictionary* const dictionary = value.dictionary()) {
    const Value* const found = dictionary->Find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.integer()) return std::nullopt;
  if (value.IsText()) {
    const auto n = static_cast<std::int64_t>(value.text().size());
    const std::int64_t index = *key.integer() + (*key.integer() < 0 ? n : 0);
    if (index < 0 || index >= n) return std::nullopt;
    return TextValue(budget, Characters(1, value.text()[static_cast<std::size_t>(index)]));
  }
  const Sequence* const sequence = value.sequence();
  if (sequence == nullptr || !sequence->IsIndexed()) return std::nullopt;
  const Value* const found = ElementAt(sequence->items, *key.integer());
  return found == nullptr ? std::nullopt : std::optional(*found);
}

struct SliceBounds {
  std::int64_t first, last, step;
  std::size_t count;
};

// As Python's slice.indices().
Result<SliceBounds> BoundsOf(std::int64_t n, const Value& first, const Value& last,
                             const Value& step_value) {
  const std::int64_t step = step_value.IsNone() ? 1 : *step_value.integer();
  if (step == 0) return InvalidArgument("slice step cannot be zero");
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto at = [&](const Value& part, std::int64_t otherwise) {
    if (part.IsNone()) return otherwise;
    const std::int64_t index = *part.integer();
    return std::clamp(index < 0 ? index + n : index, low, high);
  };
  const std::int64_t begin = at(first, step > 0 ? low : high);
  const std::int64_t end = at(last, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? end - begin : begin - end;
  // Steps longer than the text take one element.
  const std::int64_t stride = step > n ? n + 1 : step < -n ? n + 1 : std::abs(step);
  const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  return SliceBounds{begin, end, step > 0 ? stride : -stride, static_cast<std::size_t>(count)};
}

template <typename Container>
Container Sliced(const Container& all, const SliceBounds& bounds) {
  Container out;
  out.reserve(bounds.count);
  std::int64_t at = bounds.first;
  for (std::size_t i = 0; i < bounds.count; ++i, at += bounds.step)
    out.push_back(all[static_cast<std::size_t>(at)]);
  return out;
}

}  // namespace

Result<Value> AttributeOf(Environment& environment, const Value& value, std::string_view name) {
  FORETOKEN_TRY(std::optional<Value> attribute, PythonAttribute(value, name));
  if (attribute) return *std::move(attribute);
  if (const Dictionary* const dictionary = value.dictionary()) {
    environment.budget.Spend(name.size());
    if (const Value* const found = dictionary->Find(name)) return *found;
  }
  return NoAttribute(value, name);
}

Result<Value> ItemOf(Environment& environment, const Value& value, const Value& key) {
  if (value.IsUndefined()) return InvalidArgument(value.why());
  environment.budget.Spend(WeightOf(key));
  if (auto found = Subscript(environment.budget, value, key)) return *std::move(found);
  if (!key.IsText()) {
    const Utf8Text shown = Utf8Of(StrOf(environment.budget, key));
    return Value::Missing(fmt::format("{} has no element {}", ObjectName(value), Shown(shown)));
  }
  const Utf8Text name = Utf8Of(key.text());
  FORETOKEN_TRY(std::optional<Value> attribute, PythonAttribute(value, name));
  if (attribute) return *std::move(attribute);
  return NoAttribute(value, name);
}

Result<Value> SliceOf(Environment& environment, const Value& value, const Value& first,
                      const Value& last, const Value& step) {
  if (value.IsUndefined()) return InvalidArgument(value.why());
  const Sequence* const sequence = value.sequence();
  if (value.dictionary() != nullptr) return InvalidArgument("unhashable type: 'slice'");
  if (!value.IsText() && (sequence == nullptr || !sequence->IsIndexed()))
    return InvalidArgument(fmt::format("'{}' object is not subscriptable", TypeName(value)));
  for (const Value* const part : {&first, &last, &step})
    if (!part->IsNone() && !part->integer())
      return InvalidArgument("slice indices must be integers or None or have an __index__ method");
  const auto n = static_cast<std::int64_t>(*LengthOf(value));
  FORETOKEN_TRY(const SliceBounds bounds, BoundsOf(n, first, last, step));
  if (value.IsText())
    return TextValue(environment.budget, Sliced(value.text(), bounds), value.text_object()->markup);
  if (sequence->kind == SequenceKind::kRange)
    return RangeValue(environment.budget, sequence->start + bounds.first * sequence->step,
                      sequence->start + bounds.last * sequence->step, sequence->step * bounds.step);
  return ListValue(environment.budget, Sliced(sequence->items, bounds), sequence->kind);
}

Result<Value> PathOf(Environment& environment, Value value, const Value& path) {
  if (path.IsNone() || path.IsUndefined()) return value;
  if (!path.IsText()) return ItemOf(environment, value, path);
  CharactersView rest = path.text();
  environment.budget.Spend(rest.size());
  for (;;) {
    const std::size_t dot = FindText(rest, U".");
    const CharactersView part = rest.substr(0, dot);
    const bool digits = IsDecimal(part) && part.size() < 18;
    const Value key = digits ? Value(static_cast<std::int64_t>(std::stoll(ToUtf8(part))))
                             : TextValue(environment.budget, Characters(part));
    FORETOKEN_TRY(value, ItemOf(environment, value, key));
    if (dot == kNowhere) return value;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace foretoken::text::jinja
