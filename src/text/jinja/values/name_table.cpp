// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/name_table.h"

#include "base/seeded_hash.h"

namespace foretoken::text::jinja {
namespace {

// Names that are compared one after the other before there is an index.
constexpr std::size_t kFewNames = 8;

}  // namespace

std::size_t NameTable::PlaceOf(std::string_view name) const {
  if (items_.size() > kFewNames) {
    const std::int32_t found = places_.Find(SeededHashOf(name), [&](std::int32_t place) {
      return items_[static_cast<std::size_t>(place)].first == name;
    });
    return found == PlaceIndex::kNone ? items_.size() : static_cast<std::size_t>(found);
  }
  std::size_t place = 0;
  while (place < items_.size() && items_[place].first != name) ++place;
  return place;
}

const Value* NameTable::Find(std::string_view name) const {
  const std::size_t place = PlaceOf(name);
  return place == items_.size() ? nullptr : &items_[place].second;
}

void NameTable::Set(std::string_view name, Value value) {
  const std::size_t place = PlaceOf(name);
  if (place < items_.size()) {
    items_[place].second = std::move(value);
    return;
  }
  items_.emplace_back(Utf8Text(name), std::move(value));
  if (place < kFewNames) return;
  const auto hash_of = [this](std::int32_t i) {
    return SeededHashOf(std::string_view(items_[static_cast<std::size_t>(i)].first));
  };
  for (std::size_t i = place == kFewNames ? 0 : place; i <= place; ++i) {
    const auto number = static_cast<std::int32_t>(i);
    places_.Insert(hash_of(number), number, hash_of);
  }
}

bool NameTable::Add(std::string_view name, Value value) {
  if (Find(name) != nullptr) return false;
  Set(name, std::move(value));
  return true;
}

}  // namespace foretoken::text::jinja
