// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "base/work_count.h"

namespace foretoken::grammar {
namespace {

constexpr std::string_view kQuantifiers = "*+?{";

bool IsDecimalDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// \d, \w, \s by their letters, . by itself.
CharacterClass Named(char name) {
  switch (name) {
    case 'd':
      return CharacterClass({{'0', '9'}});
    case 'w':
      return CharacterClass({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    case '.':
      return CharacterClass({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).Complement();
    default:
      return CharacterClass({{'\t', '\r'}, {' ', ' '}});
  }
}

// What \S excludes: all of ECMAScript's whitespace.
CharacterClass AnySpace() {
  return Named('s').With(CharacterClass({{0xA0, 0xA0},
                                         {0x1680, 0x1680},
                                         {0x2000, 0x200A},
                                         {0x2028, 0x2029},
                                         {0x202F, 0x202F},
                                         {0x205F, 0x205F},
                                         {0x3000, 0x3000},
                                         {0xFEFF, 0xFEFF}}));
}

std::optional<CharacterClass> Escaped(char name) {
  if (name == 'd' || name == 'w' || name == 's') return Named(name);
  if (name == 'D' || name == 'W') return Named(name == 'D' ? 'd' : 'w').Complement();
  if (name == 'S') return AnySpace().Complement();
  return std::nullopt;
}

class RegexParser {
 public:
  explicit RegexParser(std::string_view text) : text_(text) {}

  Result<Regex> Parse() {
    Regex regex;
    do {
      Regex::Alternative alternative;
      while (Accept("^")) alternative.at_begin = true;
      FORETOKEN_TRY(alternative.body, ParseSequence(0));
      while (Accept("$")) alternative.at_end = true;
      regex.alternatives.push_back(std::move(alternative));
    } while (Accept("|"));
    if (AtEnd()) return regex;
    if (Peek() == ')') return Bad("')' has no group; drop it or write \\)");
    return Lacking("the anchor '$' inside of it");
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Accept(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  tl::unexpected<Error> Bad(std::string_view why,
                            ErrorCode code = ErrorCode::kInvalidArgument) const {
    return Fail(code, fmt::format("byte {}: {}", std::min(at_, text_.size()), why));
  }
  tl::unexpected<Error> Lacking(std::string_view construct) const {
    return Bad(fmt::format("{} is not supported; write it without", construct),
               ErrorCode::kUnsupported);
  }

  Result<RegexNode> ParseAlternatives(int depth) {
    RegexNode alternatives{.kind = RegexNode::Kind::kAlternatives};
    do {
      FORETOKEN_TRY(RegexNode sequence, ParseSequence(depth));
      alternatives.children.push_back(std::move(sequence));
    } while (Accept("|"));
    if (alternatives.children.size() > 1) return alternatives;
    return std::move(alternatives.children.front());
  }

  Result<RegexNode> ParseSequence(int depth) {
    if (depth > Regex::kMaxDepth)
      return Bad(fmt::format("groups nest deeper than {}; flatten them", Regex::kMaxDepth),
                 ErrorCode::kTooLarge);
    RegexNode sequence;
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      // $ ends the whole; Parse checks other uses.
      if (depth == 0 && Peek() == '$') break;
      FORETOKEN_TRY(RegexNode atom, ParseAtom(depth));
      FORETOKEN_TRY(RegexNode repeated, ParseQuantifier(std::move(atom)));
      sequence.children.push_back(std::move(repeated));
    }
    return sequence;
  }

  Result<RegexNode> ParseAtom(int depth) {
    CountWork();
    const char c = Peek();
    if (c == '^') return Lacking("the anchor '^' inside of it");
    if (c == '$') return Lacking("the anchor '$' inside of it");
    if (IsQuantifier()) return Bad(fmt::format("'{}' has nothing before it to repeat; drop it", c));
    if (Accept("(")) return ParseGroup(depth);
    RegexNode atom{.kind = RegexNode::Kind::kCharacter};
    if (Accept("[")) {
      FORETOKEN_TRY(atom.characters, ParseClass());
    } else if (Accept(".")) {
      atom.characters = Named('.');
    } else {
      FORETOKEN_TRY(atom.characters, ParseMember());
    }
    return atom;
  }

  Result<RegexNode> ParseGroup(int depth) {
    if (Peek() == '?' && !Accept("?:")) FORETOKEN_CHECK_OK(SkipName());
    FORETOKEN_TRY(RegexNode group, ParseAlternatives(depth + 1));
    if (!Accept(")")) return Bad("a group has no end; close it with )");
    return group;
  }

  // (?<name> and (?P<name>.
  Status SkipName() {
    if (Peek(1) == '=' || Peek(1) == '!')
      return Lacking(Peek(1) == '=' ? "lookahead (?=" : "lookahead (?!");
    const std::size_t bracket = Peek(1) == 'P' ? 2 : 1;
    if (Peek(bracket) != '<') return Lacking(fmt::format("the group (?{}", Shown(1)));
    if (Peek(bracket + 1) == '=' || Peek(bracket + 1) == '!') return Lacking("lookbehind (?<");
    const std::size_t end = text_.find('>', at_);
    if (end == text_.npos) return Bad("a group's name has no end; close it with >");
    at_ = end + 1;
    return {};
  }

  bool IsQuantifier() const {
    const char c = Peek();
    return c != '\0' && kQuantifiers.find(c) != kQuantifiers.npos &&
           (c != '{' || IsDecimalDigit(Peek(1)));
  }

  Result<RegexNode> ParseQuantifier(RegexNode atom) {
    if (!IsQuantifier()) return atom;
    RegexNode repeat{.kind = RegexNode::Kind::kRepeat};
    if (Accept("+")) {
      repeat.least = 1;
    } else if (Accept("?")) {
      repeat.most = 1;
    } else if (!Accept("*")) {
      ++at_;
      FORETOKEN_TRY(repeat.least, ParseCount());
      repeat.most = repeat.least;
      if (Accept(",")) {
        repeat.most = GbnfWriter::kNoEnd;
        if (Peek() != '}') {
          FORETOKEN_TRY(repeat.most, ParseCount());
          if (repeat.most < repeat.least)
            return Bad("a repetition ends below its beginning; turn it around");
        }
      }
      if (!Accept("}")) return Bad("a repetition has no end; close it with }");
    }
    Accept("?");  // lazy
    if (Peek() == '+') return Lacking("a possessive repetition");
    if (IsQuantifier()) return Bad("a repetition of a repetition; put the inner one in a group");
    repeat.children.push_back(std::move(atom));
    return repeat;
  }

  Result<int> ParseCount() {
    if (!IsDecimalDigit(Peek())) return Bad("a repetition needs numbers; write {n,m}");
    int n = 0;
    for (; IsDecimalDigit(Peek()); ++at_) {
      n = n * 10 + (Peek() - '0');
      if (n > Regex::kMaxRepeats)
        return Bad(fmt::format("a repetition of more than {}; lower it", Regex::kMaxRepeats),
                   ErrorCode::kTooLarge);
    }
    return n;
  }

  Result<CharacterClass> ParseClass() {
    const bool negated = Accept("^");
    CharacterClass found;
    std::vector<CodePoints> ranges;
    while (!Accept("]")) {
      if (AtEnd()) return Bad("a class has no end; close it with ]");
      FORETOKEN_TRY(const CharacterClass first, ParseMember(true));
      if (!first.IsOne() || Peek() != '-' || Peek(1) == ']' || Peek(1) == '\0') {
        ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
        continue;
      }
      ++at_;
      FORETOKEN_TRY(const CharacterClass last, ParseMember(true));
      if (!last.IsOne() || last.ranges()[0].first < first.ranges()[0].first)
        return Bad("a range has no good end; write it as [a-z]");
      ranges.push_back({first.ranges()[0].first, last.ranges()[0].first});
    }
    found = CharacterClass(std::move(ranges));
    if (negated) found = found.Complement();
    if (found.empty()) return Bad("a class has no characters; name some");
    return found;
  }

  // A character, or an escape that stands for several.
  Result<CharacterClass> ParseMember(bool in_class = false) {
    CountWork();
    if (!Accept("\\")) return ParseUtf8();
    if (AtEnd()) return Bad("a backslash at the end; write \\\\");
    const char c = Peek();
    if (const auto several = Escaped(c)) return ++at_, *several;
    constexpr std::pair<char, char32_t> kControls[] = {
        {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'f', '\f'}, {'v', '\v'}};
    for (const auto& [name, value] : kControls)
      if (c == name) return ++at_, CharacterClass::Of(value);
    if (c == '0' && !IsDecimalDigit(Peek(1))) return ++at_, CharacterClass::Of(0);
    if (c == 'x') return ParseHex(1, 2);
    if (c == 'u' && Peek(1) == '{') {
      const std::size_t end = text_.find('}', at_);
      if (end == text_.npos || end - at_ < 3 || end - at_ > 8)
        return Bad("\\u{ without 1 to 6 digits and }; complete it");
      FORETOKEN_TRY(const CharacterClass one, ParseHex(2, end - at_ - 2));
      ++at_;
      return one;
    }
    if (c == 'u') return ParseUtf16();
    if (c == 'b' && in_class) return ++at_, CharacterClass::Of('\b');
    if (c == 'b' || c == 'B') return Lacking(fmt::format("the word boundary \\{}", c));
    if (IsDecimalDigit(c) || c == 'k') return Lacking(fmt::format("the backreference \\{}", c));
    if (c == 'p' || c == 'P') return Lacking(fmt::format("the Unicode property \\{}", c));
    if (IsLetter(c)) return Lacking(fmt::format("the escape \\{}", c));
    return ParseUtf8();
  }

  Result<char32_t> ParseHexValue(std::size_t skip, std::size_t n_digits) {
    at_ += skip;
    char32_t value = 0;
    for (std::size_t i = 0; i < n_digits; ++i, ++at_) {
      const char c = Peek();
      const int digit = IsDecimalDigit(c)        ? c - '0'
                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                        : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                 : -1;
      if (digit < 0) return Bad("an escape lacks a hex digit; complete it");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  Result<CharacterClass> ParseHex(std::size_t skip, std::size_t n_digits) {
    FORETOKEN_TRY(const char32_t value, ParseHexValue(skip, n_digits));
    return OneOrError(value);
  }

  // \uD83D\uDE00 is one character.
  Result<CharacterClass> ParseUtf16() {
    FORETOKEN_TRY(const char32_t value, ParseHexValue(1, 4));
    if (value < 0xD800 || value > 0xDBFF || text_.substr(at_, 2) != "\\u") return OneOrError(value);
    FORETOKEN_TRY(const char32_t low, ParseHexValue(2, 4));
    if (low < 0xDC00 || low > 0xDFFF) return OneOrError(low);
    return OneOrError(0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00));
  }

  Result<CharacterClass> OneOrError(char32_t value) const {
    const bool scalar = value <= kLastCodePoint && (value < 0xD800 || value > 0xDFFF);
    if (!scalar)
      return Bad(fmt::format("U+{:04X} is not a character; give one of Unicode",
                             static_cast<std::uint32_t>(value)));
    return CharacterClass::Of(value);
  }

  Result<CharacterClass> ParseUtf8() {
    const Utf8Character c = ReadUtf8(text_.substr(at_));
    if (!c.valid())
      return Bad(fmt::format("byte 0x{:02x} is not UTF-8; write it in UTF-8",
                             static_cast<unsigned char>(Peek())));
    at_ += c.size;
    return CharacterClass::Of(c.code);
  }

  std::string Shown(std::size_t ahead) const {
    const char c = Peek(ahead);
    return c > ' ' && c < 0x7F ? std::string(1, c) : std::string();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::int64_t kEndless = std::int64_t{1} << 40;

RegexLength LengthOfNode(const RegexNode& node) {
  RegexLength length;
  switch (node.kind) {
    case RegexNode::Kind::kCharacter:
      return {1, 1};
    case RegexNode::Kind::kSequence:
      for (const RegexNode& child : node.children) {
        const RegexLength part = LengthOfNode(child);
        length = {length.least + part.least, length.most + part.most};
      }
      break;
    case RegexNode::Kind::kAlternatives:
      length = {kEndless, 0};
      for (const RegexNode& child : node.children) {
        const RegexLength part = LengthOfNode(child);
        length = {std::min(length.least, part.least), std::max(length.most, part.most)};
      }
      break;
    case RegexNode::Kind::kRepeat: {
      const RegexLength part = LengthOfNode(node.children.front());
      const std::int64_t most = node.most == GbnfWriter::kNoEnd ? kEndless : node.most;
      length = {part.least * node.least,
                part.most == 0
                    ? 0
                    : std::min(part.most, kEndless / std::max<std::int64_t>(most, 1)) * most};
      break;
    }
  }
  return {std::min(length.least, kEndless), std::min(length.most, kEndless)};
}

}  // namespace

Result<Regex> ParseRegex(std::string_view pattern) {
  return RegexParser(pattern).Parse();
}

RegexLength LengthOf(const Regex& regex) {
  RegexLength length = {kEndless, 0};
  for (const Regex::Alternative& alternative : regex.alternatives) {
    const RegexLength part = LengthOfNode(alternative.body);
    const bool closed = alternative.at_begin && alternative.at_end;
    length = {std::min(length.least, part.least),
              std::max(length.most, closed ? part.most : kEndless)};
  }
  if (length.most >= kEndless) length.most = GbnfWriter::kNoEnd;
  return length;
}

}  // namespace foretoken::grammar
