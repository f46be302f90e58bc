// SPDX-License-Identifier: Apache-2.0
// grammar/pattern/character_class.h: sets of characters.
#pragma once

#include <vector>

#include "grammar/gbnf.h"

namespace foretoken::grammar {

using grammar::CodePoints;

class CharacterClass {
 public:
  CharacterClass() = default;
  // Made from any ranges; surrogates are left out.
  explicit CharacterClass(std::vector<CodePoints> ranges);
  static CharacterClass Of(char32_t c) { return CharacterClass({{c, c}}); }

  // Ascending and disjoint; Unicode scalars.
  const std::vector<CodePoints>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool IsOne() const { return ranges_.size() == 1 && ranges_[0].first == ranges_[0].last; }
  bool Has(char32_t c) const;

  CharacterClass Complement() const;
  CharacterClass With(const CharacterClass& other) const;
  CharacterClass Without(const CharacterClass& other) const;

 private:
  std::vector<CodePoints> ranges_;
};

}  // namespace foretoken::grammar
