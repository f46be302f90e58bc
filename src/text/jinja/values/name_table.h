// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/name_table.h: values by their names: variables, arguments, attributes of a
// namespace. Names come from templates and from clients, so there may be many, chosen to collide.
#pragma once

#include <string_view>
#include <utility>

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

class NameTable {
 public:
  using Item = std::pair<Utf8Text, Value>;

  // In the order in which the names came.
  const List<Item>& items() const { return items_; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }

  // items().size(): there is none.
  std::size_t PlaceOf(std::string_view name) const;
  const Value* Find(std::string_view name) const;
  // Replaces the value of a name that is there.
  void Set(std::string_view name, Value value);
  // False, and nothing changes: there is one of this name.
  bool Add(std::string_view name, Value value);

 private:
  List<Item> items_;
  PlaceIndex places_;  // of the items, by the hashes of their names; empty where they are few
};

struct Namespace {
  NameTable attributes;
};

}  // namespace foretoken::text::jinja
