// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "text/jinja/values/comparison.h"
#include "text/jinja/values/loop.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kObjectBytes = 64;

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

std::size_t HashOfText(CharactersView text) {
  std::size_t hash = 0xcbf29ce484222325u;
  for (const char32_t c : text) hash = (hash ^ CodeOf(c)) * 0x100000001b3u;
  return hash;
}

// Tuples in tuples count by their length alone, which bounds the time.
std::size_t HashOfPart(const Value& value) {
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

const std::string& Value::why() const {
  static const std::string unknown = "it is undefined";
  const auto& why = std::get<Undefined>(data_).why;
  return why == nullptr ? unknown : *why;
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

const Value* Dictionary::Find(const Value& key) const {
  if (!IsHashable(key)) return nullptr;
  const auto [begin, end] = places.equal_range(HashOf(key));
  for (auto place = begin; place != end; ++place)
    if (AreEqual(items[place->second].first, key)) return &items[place->second].second;
  return nullptr;
}

const Value* Dictionary::Find(std::string_view key) const {
  return Find(ConstantText(FromUtf8(key)));
}

const Value* Namespace::Find(std::string_view name) const {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Namespace::Set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes)
    if (key == name) {
      old = std::move(value);
      return;
    }
  attributes.emplace_back(name, std::move(value));
}

Value TextValue(Budget& budget, Characters text, bool markup) {
  const std::size_t bytes = kObjectBytes + text.size() * sizeof(char32_t);
  budget.Spend(text.size());
  return Value(
      std::shared_ptr<const TextObject>(new TextObject{std::move(text), markup, {budget, bytes}}));
}

Value TextValue(Budget& budget, std::string_view text, bool from_input) {
  return TextValue(budget, FromUtf8(text, from_input));
}

Value ConstantText(Characters text) {
  return Value(std::shared_ptr<const TextObject>(new TextObject{std::move(text), false, {}}));
}

Value ListValue(Budget& budget, Values items, SequenceKind kind) {
  const int depth = 1 + DepthOf(items);
  const std::size_t weight = WeightOf(items);
  const bool hashable =
      kind == SequenceKind::kTuple && weight <= kMostKeyWeight && AllHashable(items);
  budget.SeeValueDepth(depth);
  budget.Spend(items.size());
  const std::size_t bytes = kObjectBytes + items.size() * sizeof(Value);
  return Value(std::shared_ptr<const Sequence>(new Sequence{.kind = kind,
                                                            .items = std::move(items),
                                                            .depth = depth,
                                                            .weight = weight,
                                                            .hashable = hashable,
                                                            .held = {budget, bytes}}));
}

Value FailingGenerator(Error error) {
  return Value(std::shared_ptr<const Sequence>(new Sequence{
      .kind = SequenceKind::kGenerator, .error = std::make_shared<const Error>(std::move(error))}));
}

Value RangeValue(Budget& budget, std::int64_t start, std::int64_t stop, std::int64_t step) {
  Values items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) items.emplace_back(i);
  const std::size_t bytes = kObjectBytes + items.size() * sizeof(Value);
  budget.Spend(items.size());
  const std::size_t weight = WeightOf(items);
  return Value(std::shared_ptr<const Sequence>(new Sequence{.kind = SequenceKind::kRange,
                                                            .items = std::move(items),
                                                            .weight = weight,
                                                            .start = start,
                                                            .stop = stop,
                                                            .step = step,
                                                            .held = {budget, bytes}}));
}

void DictionaryBuilder::Set(Value key, Value value) {
  Dictionary& d = *dictionary_;
  d.depth = std::max({d.depth, 1 + DepthOf(key), 1 + DepthOf(value)});
  d.weight = std::min(kMostWeight, d.weight + 32 + WeightOf(key) + WeightOf(value));
  const std::size_t hash = HashOf(key);
  const auto [begin, end] = d.places.equal_range(hash);
  for (auto place = begin; place != end; ++place)
    if (AreEqual(d.items[place->second].first, key)) {
      d.items[place->second].second = std::move(value);
      return;
    }
  d.places.emplace(hash, d.items.size());
  d.items.emplace_back(std::move(key), std::move(value));
}

bool DictionaryBuilder::Add(const Value& key) {
  const std::size_t n = dictionary_->items.size();
  Set(key, Value(None{}));
  return dictionary_->items.size() > n;
}

Value DictionaryBuilder::Take(Budget& budget) {
  budget.SeeValueDepth(dictionary_->depth);
  budget.Spend(dictionary_->items.size());
  const std::size_t bytes = kObjectBytes + dictionary_->items.size() * 2 * kObjectBytes;
  std::shared_ptr<Dictionary> made(new Dictionary{.items = std::move(dictionary_->items),
                                                  .places = std::move(dictionary_->places),
                                                  .depth = dictionary_->depth,
                                                  .weight = dictionary_->weight,
                                                  .held = {budget, bytes}});
  return Value(std::shared_ptr<const Dictionary>(std::move(made)));
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

std::size_t HashOf(const Value& value) {
  if (value.IsNumber()) return std::hash<double>()(value.number());
  if (value.IsText()) return HashOfText(value.text());
  std::size_t hash = value.IsNone() ? 7 : 11;
  if (const Sequence* const sequence = value.sequence())
    for (const Value& item : sequence->items) hash = hash * 31 + HashOfPart(item);
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
    FORETOKEN_CHECK_OK(budget.Admit(value.text().size(), 2 * kObjectBytes));
    return CharactersOf(budget, value.text());
  }
  if (const Sequence* const sequence = value.sequence()) {
    budget.Spend(sequence->items.size());
    if (sequence->error != nullptr) return Fail(*sequence->error);
    if (!sequence->IsGenerator()) return sequence->items;
    const auto unread = sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->n_read);
    Values rest(unread, sequence->items.end());
    sequence->n_read = sequence->items.size();
    return rest;
  }
  if (const Dictionary* const dictionary = value.dictionary()) {
    budget.Spend(dictionary->items.size());
    Values keys;
    for (const auto& [key, member] : dictionary->items) keys.push_back(key);
    return keys;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' object is not iterable", TypeName(value)));
}

}  // namespace foretoken::text::jinja
