// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "base/seeded_hash.h"
#include "text/jinja/values/comparison.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

// Keys that are compared one after the other before there is an index.
constexpr std::size_t kFewKeys = 8;

int DepthOf(const Value& value) {
  if (const auto* const loop = value.loop()) return (*loop)->depth;
  if (const Callable* const callable = value.callable()) return 1 + DepthOf(callable->self);
  if (const Sequence* const sequence = value.sequence()) return sequence->depth;
  if (const Dictionary* const dictionary = value.dictionary()) return dictionary->depth;
  return 0;
}

constexpr std::size_t kMostWeight = std::size_t{1} << 60, kMostKeyWeight = 1 << 16;

std::size_t WeightOf(const Values& items) {
  std::size_t weight = 32;
  for (const Value& item : items) weight = std::min(kMostWeight, weight + WeightOf(item));
  return weight;
}

// Keys may be numbers, texts, None and tuples of those.
bool AllHashable(const Values& items) {
  return std::all_of(items.begin(), items.end(), IsHashable);
}

// Equal texts may differ in the marks of their characters.
std::uint64_t HashOfText(CharactersView text) {
  std::array<char32_t, 64> block;
  std::uint64_t hash = text.size();
  do {
    const std::size_t n = std::min(text.size(), block.size() - 2);
    block[0] = static_cast<char32_t>(hash), block[1] = static_cast<char32_t>(hash >> 32);
    std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n), block.begin() + 2,
                   CodeOf);
    hash = SeededHashOf(std::span(block).first(n + 2));
    text.remove_prefix(n);
  } while (!text.empty());
  return hash;
}

// Tuples in tuples count by their length alone, which bounds the time.
std::uint64_t HashOfPart(const Value& value) {
  return value.sequence() != nullptr ? value.sequence()->items.size() : HashOf(value);
}

Values CharactersOf(Budget& budget, CharactersView text) {
  Values items;
  items.reserve(text.size());
  for (const char32_t c : text) {
    if (budget.over()) break;
    items.push_back(TextValue(budget, Characters(1, c)));
  }
  return items;
}

}  // namespace

int DepthOf(const Values& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, DepthOf(item));
  return depth;
}

double Value::number() const {
  if (IsFloat()) return std::get<double>(data_);
  return static_cast<double>(*integer());
}

std::optional<std::int64_t> Value::integer() const {
  if (IsInteger()) return std::get<std::int64_t>(data_);
  if (IsBoolean()) return boolean() ? 1 : 0;
  return std::nullopt;
}

const Characters& Value::text() const {
  return text_object()->characters;
}

std::string Value::why() const {
  const auto& why = std::get<Undefined>(data_).why;
  return std::string(why == nullptr ? std::string_view("it is undefined") : *why);
}

bool Value::SameAs(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (IsUndefined()) return std::get<Undefined>(data_).why == std::get<Undefined>(other.data_).why;
  if (IsNone()) return true;
  if (IsNumber() || IsText()) return AreEqual(*this, other);  // CPython shares small ones
  return std::visit(
      [&](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        if constexpr (requires { mine.get(); }) return mine == std::get<T>(other.data_);
        return false;
      },
      data_);
}

std::size_t Dictionary::PlaceOf(const Value& key) const {
  if (items.size() > kFewKeys) {
    const std::int32_t found = places.Find(HashOf(key), [&](std::int32_t place) {
      return AreSame(items[static_cast<std::size_t>(place)].first, key);
    });
    return found == PlaceIndex::kNone ? items.size() : static_cast<std::size_t>(found);
  }
  std::size_t place = 0;
  while (place < items.size() && !AreSame(items[place].first, key)) ++place;
  return place;
}

const Value* Dictionary::Find(const Value& key) const {
  if (!IsHashable(key)) return nullptr;
  const std::size_t place = PlaceOf(key);
  return place == items.size() ? nullptr : &items[place].second;
}

const Value* Dictionary::Find(std::string_view key) const {
  return Find(ConstantText(FromUtf8(key)));
}

Value TextValue(Budget& budget, Characters text, bool markup) {
  budget.Spend(text.size());
  return Value(std::shared_ptr<const TextObject>(Shared(TextObject{std::move(text), markup})));
}

Value TextValue(Budget& budget, std::string_view text, bool from_input) {
  return TextValue(budget, FromUtf8(text, from_input));
}

Value ConstantText(Characters text) {
  return Value(std::shared_ptr<const TextObject>(Shared(TextObject{std::move(text), false})));
}

Value ListValue(Budget& budget, Values items, SequenceKind kind) {
  const int depth = 1 + DepthOf(items);
  const std::size_t weight = WeightOf(items);
  const bool hashable =
      kind == SequenceKind::kTuple && weight <= kMostKeyWeight && AllHashable(items);
  budget.SeeValueDepth(depth);
  budget.Spend(kTouchedPerElement * items.size());
  return Value(std::shared_ptr<const Sequence>(Shared(Sequence{.kind = kind,
                                                               .items = std::move(items),
                                                               .depth = depth,
                                                               .weight = weight,
                                                               .hashable = hashable})));
}

Value FailingGenerator(const Error& error) {
  return Value(std::shared_ptr<const Sequence>(
      Shared(Sequence{.kind = SequenceKind::kGenerator,
                      .error = Shared(Failure{error.code, Utf8Text(error.message)})})));
}

Value RangeValue(Budget& budget, std::int64_t start, std::int64_t stop, std::int64_t step) {
  Values items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) items.emplace_back(i);
  budget.Spend(items.size());
  const std::size_t weight = WeightOf(items);
  return Value(std::shared_ptr<const Sequence>(Shared(Sequence{.kind = SequenceKind::kRange,
                                                               .items = std::move(items),
                                                               .weight = weight,
                                                               .start = start,
                                                               .stop = stop,
                                                               .step = step})));
}

void DictionaryBuilder::Set(Value key, Value value) {
  Dictionary& d = dictionary_;
  // The key is hashed, perhaps once more when the index grows, and compared with an equal one.
  budget_->Spend(2 * WeightOf(key));
  d.depth = std::max({d.depth, 1 + DepthOf(key), 1 + DepthOf(value)});
  d.weight = std::min(kMostWeight, d.weight + 32 + WeightOf(key) + WeightOf(value));
  const std::size_t place = d.PlaceOf(key);
  if (place < d.items.size()) {
    d.items[place].second = std::move(value);
    return;
  }
  d.items.emplace_back(std::move(key), std::move(value));
  const auto hash_of = [&](std::int32_t i) {
    return HashOf(d.items[static_cast<std::size_t>(i)].first);
  };
  if (place < kFewKeys) return;
  for (std::size_t i = place == kFewKeys ? 0 : place; i <= place; ++i) {
    const auto number = static_cast<std::int32_t>(i);
    d.places.Insert(hash_of(number), number, hash_of);
  }
}

bool DictionaryBuilder::Add(const Value& key) {
  const std::size_t n = dictionary_.items.size();
  Set(key, Value(None{}));
  return dictionary_.items.size() > n;
}

Value DictionaryBuilder::Take() {
  budget_->SeeValueDepth(dictionary_.depth);
  budget_->Spend(kTouchedPerElement * dictionary_.items.size());
  return Value(std::shared_ptr<const Dictionary>(Shared(std::move(dictionary_))));
}

std::size_t WeightOf(const Value& value) {
  if (value.IsText()) return value.text().size() + 32;
  if (const Sequence* const sequence = value.sequence()) return sequence->weight;
  if (const Dictionary* const dictionary = value.dictionary()) return dictionary->weight;
  return 32;
}

bool IsHashable(const Value& value) {
  if (value.dictionary() != nullptr) return false;
  const Sequence* const sequence = value.sequence();
  return sequence == nullptr || sequence->hashable;
}

std::uint64_t HashOf(const Value& value) {
  // Equal numbers may be of different types. Adding 0 makes one of both zeros.
  if (value.IsNumber()) return SeededHashOf(std::bit_cast<std::uint64_t>(value.number() + 0.0));
  if (value.IsText()) return HashOfText(value.text());
  std::uint64_t hash = value.IsNone() ? 7 : 11;
  if (const Sequence* const sequence = value.sequence())
    for (const Value& item : sequence->items)
      hash = SeededHashOf(std::array{hash, HashOfPart(item)});
  return hash;
}

bool IsTrue(const Value& value) {
  if (value.IsUndefined() || value.IsNone()) return false;
  if (value.IsNumber()) return value.number() != 0;
  if (value.IsText()) return !value.text().empty();
  if (const Sequence* const sequence = value.sequence())
    return sequence->IsGenerator() || !sequence->items.empty();
  if (const Dictionary* const dictionary = value.dictionary()) return !dictionary->items.empty();
  if (const auto* const loop = value.loop()) return (*loop)->length() > 0;
  return true;
}

std::string TypeName(const Value& value) {
  if (value.IsUndefined()) return "Undefined";
  if (value.IsNone()) return "NoneType";
  if (value.IsBoolean()) return "bool";
  if (value.IsInteger()) return "int";
  if (value.IsFloat()) return "float";
  if (value.IsText()) return value.text_object()->markup ? "Markup" : "str";
  if (value.dictionary() != nullptr) return "dict";
  if (value.name_space() != nullptr) return "Namespace";
  if (value.macro() != nullptr) return "Macro";
  if (value.loop() != nullptr) return "LoopContext";
  const Sequence* const sequence = value.sequence();
  if (sequence == nullptr) return "builtin_function_or_method";
  constexpr const char* kNames[] = {"list",        "tuple",      "generator", "dict_keys",
                                    "dict_values", "dict_items", "range"};
  return kNames[static_cast<std::size_t>(sequence->kind)];
}

std::optional<std::size_t> LengthOf(const Value& value) {
  if (value.IsUndefined()) return 0;
  if (value.IsText()) return value.text().size();
  if (const Dictionary* const dictionary = value.dictionary()) return dictionary->items.size();
  if (const auto* const loop = value.loop()) return static_cast<std::size_t>((*loop)->length());
  const Sequence* const sequence = value.sequence();
  if (sequence == nullptr || sequence->IsGenerator()) return std::nullopt;
  return sequence->items.size();
}

bool IsIterable(const Value& value) {
  return value.IsUndefined() || value.IsText() || value.sequence() != nullptr ||
         value.dictionary() != nullptr;
}

Result<Values> ItemsOf(Budget& budget, const Value& value) {
  if (value.IsUndefined()) return Values{};
  if (value.IsText()) {
    FORETOKEN_CHECK_OK(budget.Admit(value.text().size(), sizeof(Value) + sizeof(TextObject)));
    return CharactersOf(budget, value.text());
  }
  if (const Sequence* const sequence = value.sequence()) {
    budget.Spend(kTouchedPerElement * sequence->items.size());
    if (sequence->error != nullptr) return sequence->error->Raised();
    if (!sequence->IsGenerator()) return sequence->items;
    const auto unread = sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->n_read);
    Values rest(unread, sequence->items.end());
    sequence->n_read = sequence->items.size();
    return rest;
  }
  if (const Dictionary* const dictionary = value.dictionary()) {
    budget.Spend(kTouchedPerElement * dictionary->items.size());
    Values keys;
    for (const auto& [key, member] : dictionary->items) keys.push_back(key);
    return keys;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' object is not iterable", TypeName(value)));
}

}  // namespace foretoken::text::jinja
