// SPDX-License-Identifier: Apache-2.0
// grammar/pattern/gbnf_writer.h: builds a grammar from parts and writes it as GBNF.
//
// Parts that no text fits (AnyOf of nothing, rules that always need themselves) are left out where
// there is an alternative.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "grammar/pattern/character_class.h"

namespace foretoken::grammar {

class GbnfWriter {
 public:
  using Part = int;
  static constexpr int kNoEnd = -1;
  static constexpr std::size_t kMaxParts = std::size_t{1} << 18;
  static constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;  // of all parts

  Part Text(std::string_view text);  // UTF-8
  Part OneOf(const CharacterClass& characters);
  Part Sequence(const std::vector<Part>& parts);
  Part AnyOf(const std::vector<Part>& parts);
  Part Repeat(Part part, int least, int most);
  Part Optional(Part part) { return Repeat(part, 0, 1); }

  // A rule's name, for calls before its definition. The caller makes names unique.
  int AddRule(std::string name);
  Part Call(int rule);
  void Define(int rule, Part body);

  // There are too many parts or too much text; what is added from here on is dropped.
  bool too_large() const { return too_large_; }
  // Writes the rules that root needs, and root ::= that rule. Empty: no text fits it. Error:
  // kTooLarge.
  [[nodiscard]] Result<std::string> Write(int root);

 private:
  enum class Kind { kText, kClass, kSequence, kAnyOf, kRepeat, kCall };
  struct Piece {
    Kind kind = Kind::kText;
    std::string text = {};  // kText: as it stands; kClass: as GBNF
    std::vector<Part> children = {};
    int rule = -1, least = 0, most = 0;
  };
  struct Rule {
    std::string name;
    Part body = -1;
  };

  Part Add(Piece piece);
  const Piece& At(Part part) const { return pieces_[static_cast<std::size_t>(part)]; }
  void FindFitting();
  void Print(Part part, bool group, std::string& out);
  void PrintAnyOf(const Piece& piece, bool group, std::string& out);
  void PrintRepeat(const Piece& piece, std::string& out);
  void PrintCall(int rule, std::string& out);

  // The first stands for those beyond the limit.
  std::vector<Piece> pieces_ = std::vector<Piece>(1);
  std::vector<Rule> rules_;
  std::size_t n_text_bytes_ = 0;
  bool too_large_ = false;
  // For Write.
  std::vector<bool> fits_;     // [pieces]: some text does
  std::vector<bool> reached_;  // [rules]
  std::vector<int> to_print_;  // rules
};

}  // namespace foretoken::grammar
