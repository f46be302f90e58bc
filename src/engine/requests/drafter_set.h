// SPDX-License-Identifier: Apache-2.0
// engine/requests/drafter_set.h: the drafters of an engine, by index. Filled while the engine is
// opened; after that any thread may read which drafters there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "draft/registry.h"
#include "foretoken/result.h"

namespace foretoken::engine {

// Where several files draft by one method, names tell their drafters apart.
struct DrafterEntry {
  std::string method;     // "standalone"
  std::string name;       // in statistics: "standalone", of several "standalone:tales-1m"
  std::string full_name;  // "standalone:tales-1m"; without a file the method's name
  std::string file = {};  // of its model or head; empty: it has none
  std::unique_ptr<draft::Drafter> drafter;
  const draft::DrafterSpec* spec = nullptr;  // its row; null: the program's own drafter
  // Its drafts cost next to nothing and are certain, so they are made before the draft lengths are
  // chosen.
  bool instant = false;
  // Where in a row of the target's features the parts lie that it reads; empty: it reads none.
  std::vector<int> feature_parts = {};

  bool reads_features() const { return !feature_parts.empty(); }
  bool Answers(std::string_view asked) const {
    return asked == "portfolio" || asked == method || asked == name || asked == full_name;
  }
};

class DrafterSet {
 public:
  int size() const { return static_cast<int>(entries_.size()); }
  DrafterEntry& operator[](int d) { return entries_[static_cast<std::size_t>(d)]; }
  const DrafterEntry& operator[](int d) const { return entries_[static_cast<std::size_t>(d)]; }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  void Add(DrafterEntry entry) { entries_.push_back(std::move(entry)); }

  // Indices of the drafters of a method: one, several with commas between them, "portfolio" or
  // "none". Errors: kInvalidArgument (a method that no drafter has).
  [[nodiscard]] Result<std::vector<int>> Find(std::string_view methods) const;

  // Of requests that name no method.
  const std::vector<int>& defaults() const { return defaults_; }
  [[nodiscard]] Status SetDefaults(std::string_view methods) {
    FORETOKEN_TRY(defaults_, Find(methods));
    return {};
  }

 private:
  std::vector<DrafterEntry> entries_;
  std::vector<int> defaults_;
};

}  // namespace foretoken::engine
