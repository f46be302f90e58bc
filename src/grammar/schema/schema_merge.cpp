// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/seeded_hash.h"

namespace foretoken::grammar {
namespace {

constexpr int kNone = SchemaKeywords::kNone;

// The smaller of two limits, where kNone is no limit.
int Smaller(int a, int b) {
  return a == kNone ? b : b == kNone ? a : std::min(a, b);
}

class Merger {
 public:
  Merger(const JsonTree& tree, const SchemaSets& sets, const SchemaSet& set)
      : tree_(tree), set_(set) {
    for (const SchemaMember& member : set) all_.push_back(&sets.Keywords(member));
  }

  Result<MergedSchema> Merge() {
    MergeTypes();
    MergeValues();
    FORETOKEN_CHECK_OK(CheckValues());
    for (const SchemaKeywords* k : all_) {
      FORETOKEN_CHECK_OK(MergeStrings(*k));
      merged_.range.Narrow(k->range);
    }
    // The rest is long work that may not be needed.
    if (!merged_.values && (merged_.types & kObjectType) != 0) MergeProperties();
    if (!merged_.values && (merged_.types & kArrayType) != 0) MergeItems();
    FindContradiction();
    return std::move(merged_);
  }

 private:
  void MergeTypes() {
    bool given = false;
    JsonTypes implied = 0;
    for (const SchemaKeywords* k : all_) {
      given |= k->types.has_value();
      implied |= k->implied;
      merged_.types &= k->types.value_or(kAnyType);
      if (k->never) merged_.types = 0;
    }
    if (!given && implied != 0) merged_.types &= implied;
    implied_ = implied;
    const bool whole = std::any_of(all_.begin(), all_.end(),
                                   [](const SchemaKeywords* k) { return k->whole_multiple; });
    if (whole) merged_.types &= ~kFractionType;
  }

  // The values of the shortest list that all lists have.
  void MergeValues() {
    const SchemaKeywords* shortest = nullptr;
    for (const SchemaKeywords* k : all_)
      if (k->values && (shortest == nullptr || k->values->size() < shortest->values->size()))
        shortest = k;
    if (shortest == nullptr) return;
    merged_.values = shortest->values;
    std::erase_if(*merged_.values, [this](int v) {
      return std::any_of(all_.begin(), all_.end(), [&](const SchemaKeywords* k) {
        return k->values && !std::binary_search(k->value_numbers.begin(), k->value_numbers.end(),
                                                tree_.ValueNumber(v));
      });
    });
  }

  // Values are written as they are, so other constraints cannot apply to them.
  Status CheckValues() {
    if (!merged_.values) return {};
    std::erase_if(*merged_.values,
                  [this](int v) { return (TypeOf(tree_[v]) & merged_.types) == 0; });
    for (const int v : *merged_.values)
      if ((TypeOf(tree_[v]) & implied_) != 0)
        return Bad(
            "enum and const cannot be followed beside keywords that limit the same values; "
            "give only the values that fit");
    return {};
  }

  Status MergeStrings(const SchemaKeywords& k) {
    merged_.min_length = std::max(merged_.min_length, k.min_length);
    merged_.max_length = Smaller(merged_.max_length, k.max_length);
    if (!k.pattern || k.pattern == merged_.pattern) return {};
    if (merged_.pattern) return Bad("two patterns or formats cannot both be followed; merge them");
    merged_.pattern = k.pattern;
    merged_.pattern_at = k.pattern_at;
    return {};
  }

  tl::unexpected<Error> Bad(std::string_view why) const {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: {}", tree_.Place(set_.front().node), why));
  }

  // Everything that a member's schema says about one name. A schema that says nothing about the
  // name allows any value.
  void AddSchemas(const std::string& name, std::vector<int>& out) const {
    for (const SchemaKeywords* k : all_) {
      const int own = k->properties == kNone ? kNone : tree_.Find(k->properties, name);
      if (own != kNone)
        out.push_back(own);
      else if (k->additional != kNone)
        out.push_back(k->additional);
    }
  }

  void MergeProperties() {
    bool named = false;
    std::unordered_map<std::string, std::size_t, SeededHasher> place_of;
    const auto add = [&](const std::string& name) -> MergedSchema::Property& {
      const auto [at, added] = place_of.try_emplace(name, merged_.properties.size());
      if (added) {
        merged_.properties.push_back({name});
        AddSchemas(name, merged_.properties.back().schemas);
      }
      return merged_.properties[at->second];
    };
    for (const SchemaKeywords* k : all_) {
      if (k->additional != kNone) merged_.additional.push_back(k->additional);
      named |= k->properties != kNone;
      if (k->properties != kNone)
        for (const Json::Member& member : tree_[k->properties].members()) add(member.name);
    }
    for (const SchemaKeywords* k : all_)
      for (const std::string& name : k->required) add(name).required = true;
    merged_.open = !merged_.additional.empty() || !named;
  }

  void MergeItems() {
    std::size_t n_prefix = 0;
    bool more = true;  // items behind the prefix are described, or there is no prefix
    for (const SchemaKeywords* k : all_) {
      n_prefix = std::max(n_prefix, k->prefix_items.size());
      more &= k->prefix_items.empty() || k->items != kNone;
      merged_.min_items = std::max(merged_.min_items, k->min_items);
      merged_.max_items = Smaller(merged_.max_items, k->max_items);
      if (k->items != kNone) merged_.items.push_back(k->items);
    }
    merged_.prefix_items.resize(n_prefix);
    for (const SchemaKeywords* k : all_)
      for (std::size_t i = 0; i < n_prefix; ++i) {
        if (i < k->prefix_items.size())
          merged_.prefix_items[i].push_back(k->prefix_items[i]);
        else if (k->items != kNone)
          merged_.prefix_items[i].push_back(k->items);
      }
    if (!more)
      merged_.max_items =
          Smaller(merged_.max_items, std::max(static_cast<int>(n_prefix), merged_.min_items));
  }

  void FindContradiction() {
    std::string& why = merged_.contradiction;
    if (merged_.types == 0)
      why = "no type is left";
    else if (merged_.values && merged_.values->empty())
      why = "no value is left";
    else if (merged_.types == kStringType && Over(merged_.min_length, merged_.max_length))
      why = "minLength is more than maxLength";
    else if (merged_.types == kArrayType && Over(merged_.min_items, merged_.max_items))
      why = "minItems is more than maxItems";
    else if ((merged_.types & ~kNumberType) == 0 && merged_.range.IsEmpty())
      why = "the minimum is above the maximum";
  }
  static bool Over(int least, int most) { return most != kNone && least > most; }

  const JsonTree& tree_;
  const SchemaSet& set_;
  std::vector<const SchemaKeywords*> all_;
  JsonTypes implied_ = 0;
  MergedSchema merged_;
};

}  // namespace

Result<MergedSchema> Merge(const JsonTree& tree, const SchemaSets& sets, const SchemaSet& set) {
  return Merger(tree, sets, set).Merge();
}

}  // namespace foretoken::grammar
