// SPDX-License-Identifier: Apache-2.0
// grammar/schema/json_texts.h: the texts of JSON as rules of a grammar.
//
// Whitespace: one space, or none, behind , and : and nowhere else. Strings contain no raw control
// characters; an escaped surrogate comes as a pair, which counts as one character.
#pragma once

#include <string_view>

#include "grammar/pattern/gbnf_writer.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::grammar {

class JsonTexts {
 public:
  using Part = GbnfWriter::Part;

  explicit JsonTexts(GbnfWriter& writer);

  Part Space() { return writer_.Call(space_); }
  Part Character() { return writer_.Call(character_); }  // inside of a string
  Part String() { return writer_.Call(string_); }
  Part Integer() { return writer_.Call(integer_); }
  Part Number() { return writer_.Call(number_); }
  Part Boolean();
  Part AnyArray() { return writer_.Call(array_); }
  Part AnyObject() { return writer_.Call(object_); }
  Part AnyValue() { return writer_.Call(value_); }
  int any_object() const { return object_; }

  // The separator ", ".
  Part Comma();
  // "name": and a space.
  Part Key(std::string_view name);
  // This value, with spaces where they are allowed.
  Part Value(const JsonTree& tree, int node);

 private:
  void DefineStrings();
  void DefineNumbers();
  void DefineValues();
  Part List(std::string_view open, Part item, std::string_view close);

  GbnfWriter& writer_;
  const int space_, character_, string_, integer_, number_, array_, object_, value_;
};

}  // namespace foretoken::grammar
