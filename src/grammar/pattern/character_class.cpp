// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern/character_class.h"

#include <algorithm>
#include <utility>

namespace foretoken::grammar {
namespace {

constexpr char32_t kLast = 0x10FFFF;

// The rest of Unicode, including surrogates that are not in the ranges.
std::vector<CodePoints> Gaps(const std::vector<CodePoints>& ranges) {
  std::vector<CodePoints> gaps;
  char32_t next = 0;
  for (const CodePoints& r : ranges) {
    if (r.first > next) gaps.push_back({next, r.first - 1});
    next = std::max<char32_t>(next, r.last + 1);
  }
  if (next <= kLast) gaps.push_back({next, kLast});
  return gaps;
}

std::vector<CodePoints> Ascending(std::vector<CodePoints> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](CodePoints a, CodePoints b) { return a.first < b.first; });
  return ranges;
}

}  // namespace

CharacterClass::CharacterClass(std::vector<CodePoints> ranges) {
  std::vector<CodePoints> gaps = Gaps(Ascending(std::move(ranges)));
  gaps.push_back(kSurrogates);
  ranges_ = Gaps(Ascending(std::move(gaps)));
}

bool CharacterClass::Has(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [c](CodePoints r) { return r.first <= c && c <= r.last; });
}

CharacterClass CharacterClass::Complement() const {
  return CharacterClass(Gaps(ranges_));
}

CharacterClass CharacterClass::With(const CharacterClass& other) const {
  std::vector<CodePoints> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CharacterClass(std::move(both));
}

CharacterClass CharacterClass::Without(const CharacterClass& other) const {
  return Complement().With(other).Complement();
}

}  // namespace foretoken::grammar
