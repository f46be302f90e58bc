// SPDX-License-Identifier: Apache-2.0
// base/json/json_members.h: the members of an object, in their order and by their names.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/index_table.h"
#include "base/json/json.h"
#include "base/seeded_hash.h"

namespace foretoken {

struct Json::Members {
  Json* Find(std::string_view name) {
    if (all.size() <= kFew) {
      for (Member& member : all)
        if (member.name == name) return &member.value;
      return nullptr;
    }
    const auto at =
        places.Find(SeededHashOf(name), [&](std::int32_t i) { return NameOf(i) == name; });
    return at == IndexTable::kNone ? nullptr : &all[static_cast<std::size_t>(at)].value;
  }
  // REQUIRES: Find gives null. What it returns is there until the next call.
  Json& Add(std::string name) {
    all.push_back({std::move(name), {}});
    if (all.size() == kFew + 1)
      for (std::size_t i = 0; i < kFew; ++i) Index(i);
    if (all.size() > kFew) Index(all.size() - 1);
    return all.back().value;
  }

  std::vector<Member> all;
  IndexTable places;  // of the names, where they are many

 private:
  static constexpr std::size_t kFew = 16;

  const std::string& NameOf(std::int32_t i) const { return all[static_cast<std::size_t>(i)].name; }
  void Index(std::size_t i) {
    const auto hash_of = [this](std::int32_t at) { return SeededHashOf(NameOf(at)); };
    places.Insert(SeededHashOf(all[i].name), static_cast<std::int32_t>(i), hash_of);
  }
};

}  // namespace foretoken
