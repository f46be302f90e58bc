// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "foretoken/structured_output.h"
#include "grammar/pattern/regex.h"

namespace foretoken::grammar {
namespace {

using Part = GbnfWriter::Part;

// The character behind a backslash in a JSON string.
constexpr std::pair<char32_t, const char*> kEscapes[] = {
    {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
    {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};

// One of the characters, as written in a JSON string. Control characters without an escape of their
// own are used only if the class has nothing else.
Part InString(const CharacterClass& characters, GbnfWriter& writer) {
  std::vector<Part> ways;
  const CharacterClass plain = characters.Without(PlainInStrings().Complement());
  if (!plain.empty()) ways.push_back(writer.OneOf(plain));
  for (const auto& [c, escape] : kEscapes)
    if (characters.Has(c)) ways.push_back(writer.Text(escape));
  if (ways.empty())
    for (const CodePoints& r : characters.ranges())
      for (char32_t c = r.first; c <= r.last; ++c) {
        constexpr char kHex[] = "0123456789abcdef";
        ways.push_back(writer.Text(std::string("\\u00") + kHex[c >> 4] + kHex[c & 15]));
      }
  return writer.AnyOf(ways);
}

std::string Utf8Text(char32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

class Writing {
 public:
  Writing(GbnfWriter& writer, bool in_string) : writer_(writer), in_string_(in_string) {}

  Part Node(const RegexNode& node) {
    std::vector<Part> parts;
    switch (node.kind) {
      case RegexNode::Kind::kCharacter:
        return Character(node.characters);
      case RegexNode::Kind::kRepeat:
        return writer_.Repeat(Node(node.children.front()), node.least, node.most);
      case RegexNode::Kind::kSequence:
      case RegexNode::Kind::kAlternatives:
        for (const RegexNode& child : node.children) parts.push_back(Node(child));
    }
    return node.kind == RegexNode::Kind::kSequence ? writer_.Sequence(parts) : writer_.AnyOf(parts);
  }

 private:
  Part Character(const CharacterClass& characters) {
    const bool plain = !in_string_ || characters.Without(PlainInStrings()).empty();
    if (!plain) return InString(characters, writer_);
    return characters.IsOne() ? writer_.Text(Utf8Text(characters.ranges()[0].first))
                              : writer_.OneOf(characters);
  }

  GbnfWriter& writer_;
  const bool in_string_;
};

}  // namespace

const CharacterClass& PlainInStrings() {
  static const CharacterClass plain =
      CharacterClass({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}).Complement();
  return plain;
}

Part WholeText(const Regex& regex, GbnfWriter& writer) {
  std::vector<Part> ways;
  for (const Regex::Alternative& alternative : regex.alternatives)
    ways.push_back(Writing(writer, false).Node(alternative.body));
  return writer.AnyOf(ways);
}

Part InsideOfString(const Regex& regex, Part around, GbnfWriter& writer) {
  std::vector<Part> ways;
  for (const Regex::Alternative& alternative : regex.alternatives) {
    std::vector<Part> parts = {Writing(writer, true).Node(alternative.body)};
    if (!alternative.at_begin)
      parts.insert(parts.begin(), writer.Repeat(around, 0, GbnfWriter::kNoEnd));
    if (!alternative.at_end) parts.push_back(writer.Repeat(around, 0, GbnfWriter::kNoEnd));
    ways.push_back(writer.Sequence(parts));
  }
  return writer.AnyOf(ways);
}

}  // namespace foretoken::grammar
