// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/json_texts.h"

#include <string>
#include <vector>

#include "base/json/json.h"
#include "grammar/pattern/number_range.h"
#include "grammar/pattern/regex.h"

namespace foretoken::grammar {
namespace {

constexpr int kUsual = static_cast<int>(kUsualDigits), kExponentDigits = 2;

CharacterClass Characters(std::string_view list) {
  CharacterClass characters;
  for (const char c : list)
    characters = characters.With(CharacterClass::Of(static_cast<unsigned char>(c)));
  return characters;
}

}  // namespace

JsonTexts::JsonTexts(GbnfWriter& writer)
    : writer_(writer),
      space_(writer.AddRule("space")),
      character_(writer.AddRule("character")),
      string_(writer.AddRule("string")),
      integer_(writer.AddRule("integer")),
      number_(writer.AddRule("number")),
      array_(writer.AddRule("array")),
      object_(writer.AddRule("object")),
      value_(writer.AddRule("value")) {
  writer_.Define(space_, writer_.Optional(writer_.Text(" ")));
  DefineStrings();
  DefineNumbers();
  DefineValues();
}

void JsonTexts::DefineStrings() {
  const auto of = [this](std::string_view list) { return writer_.OneOf(Characters(list)); };
  const Part hex = of("0123456789ABCDEFabcdef");
  const auto hexes = [&](int n) { return writer_.Repeat(hex, n, n); };
  // Surrogates are D800 to DFFF; the first of a pair is below DC00, the second is not.
  const Part others = writer_.Sequence({of("0123456789ABCEFabcef"), hexes(3)});
  const Part below = writer_.Sequence({of("Dd"), of("01234567"), hexes(2)});
  const Part pair = writer_.Sequence(
      {of("Dd"), of("89ABab"), hexes(2), writer_.Text("\\u"), of("Dd"), of("CDEFcdef"), hexes(2)});
  const Part escape = writer_.Sequence(
      {writer_.Text("\\"),
       writer_.AnyOf(
           {of("\"\\/bfnrt"),
            writer_.Sequence({writer_.Text("u"), writer_.AnyOf({others, below, pair})})})});
  writer_.Define(character_, writer_.AnyOf({writer_.OneOf(PlainInStrings()), escape}));
  const Part quote = writer_.Text("\"");
  writer_.Define(string_, writer_.Sequence(
                              {quote, writer_.Repeat(Character(), 0, GbnfWriter::kNoEnd), quote}));
}

void JsonTexts::DefineNumbers() {
  const Part digit = writer_.OneOf(CharacterClass({{'0', '9'}}));
  const Part first = writer_.OneOf(CharacterClass({{'1', '9'}}));
  writer_.Define(
      integer_,
      writer_.Sequence(
          {writer_.Optional(writer_.Text("-")),
           writer_.AnyOf({writer_.Text("0"),
                          writer_.Sequence({first, writer_.Repeat(digit, 0, kUsual - 1)})})}));
  const Part fraction = writer_.Sequence({writer_.Text("."), writer_.Repeat(digit, 1, kUsual)});
  const Part exponent = writer_.Sequence({writer_.OneOf(Characters("Ee")),
                                          writer_.Optional(writer_.OneOf(Characters("+-"))),
                                          writer_.Repeat(digit, 1, kExponentDigits)});
  writer_.Define(number_, writer_.Sequence(
                              {Integer(), writer_.Optional(fraction), writer_.Optional(exponent)}));
}

JsonTexts::Part JsonTexts::List(std::string_view open, Part item, std::string_view close) {
  const Part more = writer_.Repeat(writer_.Sequence({Comma(), item}), 0, GbnfWriter::kNoEnd);
  return writer_.Sequence(
      {writer_.Text(open), writer_.Optional(writer_.Sequence({item, more})), writer_.Text(close)});
}

void JsonTexts::DefineValues() {
  writer_.Define(array_, List("[", AnyValue(), "]"));
  const Part member = writer_.Sequence({String(), writer_.Text(":"), Space(), AnyValue()});
  writer_.Define(object_, List("{", member, "}"));
  writer_.Define(value_, writer_.AnyOf({AnyObject(), AnyArray(), String(), Number(), Boolean(),
                                        writer_.Text("null")}));
}

JsonTexts::Part JsonTexts::Boolean() {
  return writer_.AnyOf({writer_.Text("true"), writer_.Text("false")});
}

JsonTexts::Part JsonTexts::Comma() {
  return writer_.Sequence({writer_.Text(","), Space()});
}

JsonTexts::Part JsonTexts::Key(std::string_view name) {
  return writer_.Sequence({writer_.Text(QuotedJson(name) + ":"), Space()});
}

JsonTexts::Part JsonTexts::Value(const JsonTree& tree, int node) {
  const Json& value = tree[node];
  const bool is_object = value.is_object();
  if (!value.is_structured()) return writer_.Text(tree.Compact(node));
  std::vector<Part> parts = {writer_.Text(is_object ? "{" : "[")};
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) parts.push_back(Comma());
    if (is_object) parts.push_back(Key(value.members()[i].name));
    parts.push_back(Value(tree, tree.Children(node)[i]));
  }
  parts.push_back(writer_.Text(is_object ? "}" : "]"));
  return writer_.Sequence(parts);
}

}  // namespace foretoken::grammar
