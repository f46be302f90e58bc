// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/syntax/lexer.h"

#include <fmt/format.h>

#include <cstdlib>

#include "text/jinja/syntax/string_literal.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kMostCharacters = std::size_t{1} << 20;

Characters WithPlainLineEnds(CharactersView source) {
  Characters out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == U'\r') {
      if (i + 1 < source.size() && source[i + 1] == U'\n') ++i;
      out += U'\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == U'\n') out.pop_back();
  return out;
}

bool IsWordCharacter(char32_t c) {
  return c < 0x80 ? (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') ||
                        (c >= U'0' && c <= U'9') || c == U'_'
                  : IsIdentifier(Characters{U'_', c});
}

bool IsDecimalCharacter(char32_t c) {
  return c >= U'0' && c <= U'9';
}

class Lexer {
 public:
  explicit Lexer(CharactersView source) : source_(source) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) FORETOKEN_CHECK_OK(ReadRoot());
    Add({.kind = TokenKind::kEnd});
    return std::move(tokens_);
  }

 private:
  tl::unexpected<Error> Bad(std::string why) const {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line_, why));
  }

  bool Follows(CharactersView text, std::size_t at) const {
    return source_.substr(std::min(at, source_.size())).starts_with(text);
  }
  bool Follows(CharactersView text) const { return Follows(text, at_); }

  void Add(Token token) {
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  // Moves to `to`, and counts the lines between.
  void MoveTo(std::size_t to) {
    for (; at_ < to; ++at_)
      if (source_[at_] == U'\n') ++line_;
  }

  std::size_t BehindSpace(std::size_t at) const {
    while (at < source_.size() && IsSpace(source_[at])) ++at;
    return at;
  }

  // Where the next tag begins.
  std::size_t NextTag(std::size_t from) const {
    for (std::size_t at = from; (at = source_.find(U'{', at)) != kNowhere; ++at)
      if (Follows(U"{%", at) || Follows(U"{{", at) || Follows(U"{#", at)) return at;
    return kNowhere;
  }

  // The text before a tag, without the white space that the tag removes. `strips`: the tag may be
  // one that removes the white space before it on its line.
  CharactersView Before(CharactersView text, char32_t sign, bool strips) const {
    if (sign == U'-') return Stripped(text, Ends::kRight);
    if (sign == U'+' || !strips) return text;
    const std::size_t line_break = text.rfind(U'\n');
    const std::size_t line = line_break == kNowhere ? 0 : line_break + 1;
    if (line == 0 && !begins_line_) return text;
    const CharactersView rest = text.substr(line);
    return Stripped(rest, Ends::kBoth).empty() ? text.substr(0, line) : text;
  }

  void AddData(CharactersView text) {
    if (!text.empty()) Add({.kind = TokenKind::kData, .text = Characters(text)});
  }

  char32_t SignAt(std::size_t at) const {
    const char32_t c = at < source_.size() ? source_[at] : 0;
    return c == U'-' || c == U'+' ? c : 0;
  }

  // If `{% WORD %}` begins at `at`, the place behind it.
  std::size_t BehindRawTag(std::size_t at, CharactersView word, bool trims) const {
    at += 2;
    if (SignAt(at) != 0) ++at;
    at = BehindSpace(at);
    if (!Follows(word, at)) return kNowhere;
    at = BehindSpace(at + word.size());
    if (Follows(U"-%}", at)) return BehindSpace(at + 3);
    if (trims && Follows(U"+%}", at)) return at + 3;
    if (!Follows(U"%}", at)) return kNowhere;
    return trims && Follows(U"\n", at + 2) ? at + 3 : at + 2;
  }

  Status ReadRoot() {
    const std::size_t tag = NextTag(at_);
    if (tag == kNowhere) {
      AddData(source_.substr(at_));
      MoveTo(source_.size());
      return {};
    }
    const char32_t sign = SignAt(tag + 2);
    const bool output = Follows(U"{{", tag);
    AddData(Before(source_.substr(at_, tag - at_), sign, !output));
    MoveTo(tag);
    if (Follows(U"{#")) return SkipComment(sign);
    if (const std::size_t raw = output ? kNowhere : BehindRawTag(tag, U"raw", false);
        raw != kNowhere) {
      MoveTo(raw);
      return ReadRaw();
    }
    Add({.kind = output ? TokenKind::kOutputBegin : TokenKind::kStatementBegin});
    MoveTo(tag + (sign == 0 ? 2 : 3));
    return ReadTag(output);
  }

  Status SkipComment(char32_t sign) {
    const std::size_t end = source_.find(U"#}", at_ + (sign == 0 ? 2 : 3));
    if (end == kNowhere) return Bad("a comment has no end; close it with #}");
    const bool strips = end > at_ && source_[end - 1] == U'-';
    const bool keeps = end > at_ && source_[end - 1] == U'+';
    std::size_t behind = end + 2;
    if (strips)
      behind = BehindSpace(behind);
    else if (!keeps && Follows(U"\n", behind))
      ++behind;
    MoveTo(behind);
    begins_line_ = source_[behind - 1] == U'\n';
    return {};
  }

  Status ReadRaw() {
    begins_line_ = source_[at_ - 1] == U'\n';
    for (std::size_t tag = at_; (tag = source_.find(U"{%", tag)) != kNowhere; ++tag) {
      const std::size_t behind = BehindRawTag(tag, U"endraw", true);
      if (behind == kNowhere) continue;
      AddData(Before(source_.substr(at_, tag - at_), SignAt(tag + 2), true));
      MoveTo(behind);
      begins_line_ = source_[behind - 1] == U'\n';
      return {};
    }
    return Bad("a raw block has no end; close it with {% endraw %}");
  }

  // Reads the end of a tag, if it is here. The place behind it, or kNowhere.
  std::size_t BehindTagEnd(bool output) const {
    const CharactersView end = output ? U"}}" : U"%}";
    if (Follows(U"-") && Follows(end, at_ + 1)) return BehindSpace(at_ + 3);
    if (!output && Follows(U"+%}")) return at_ + 3;
    if (!Follows(end)) return kNowhere;
    return !output && Follows(U"\n", at_ + 2) ? at_ + 3 : at_ + 2;
  }

  Status ReadTag(bool output) {
    std::string open;  // brackets
    while (at_ < source_.size()) {
      const std::size_t behind = open.empty() ? BehindTagEnd(output) : kNowhere;
      if (behind != kNowhere) {
        Add({.kind = output ? TokenKind::kOutputEnd : TokenKind::kStatementEnd});
        MoveTo(behind);
        begins_line_ = source_[behind - 1] == U'\n';
        return {};
      }
      if (IsSpace(source_[at_]))
        MoveTo(at_ + 1);
      else
        FORETOKEN_CHECK_OK(ReadPart(open));
    }
    return Bad(output ? "an output has no end; close it with }}"
                      : "a statement has no end; close it with %}");
  }

  Status ReadPart(std::string& open) {
    const char32_t c = source_[at_];
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == U'.';
    if (IsDecimalCharacter(c)) return ReadNumber(behind_dot);
    if (c == U'\'' || c == U'"') return ReadString(c);
    if (!IsWordCharacter(c)) return ReadSign(open);
    std::size_t end = at_;
    while (end < source_.size() && IsWordCharacter(source_[end])) ++end;
    Add({.kind = TokenKind::kName, .word = ToUtf8(source_.substr(at_, end - at_))});
    MoveTo(end);
    return {};
  }

  // The end of digits that may have single underscores between them.
  std::size_t BehindDigits(std::size_t at, bool (*is_digit)(char32_t) = IsDecimalCharacter) const {
    while (at < source_.size() &&
           (is_digit(source_[at]) ||
            (source_[at] == U'_' && at + 1 < source_.size() && is_digit(source_[at + 1]))))
      ++at;
    return at;
  }

  // Where a fraction or an exponent behind the digits at `at` ends; `at` itself if there is none.
  std::size_t BehindFraction(std::size_t at) const {
    std::size_t end = at;
    if (Follows(U".", at) && at + 1 < source_.size() && IsDecimalCharacter(source_[at + 1]))
      end = BehindDigits(at + 1);
    if (Follows(U"e", end) || Follows(U"E", end)) {
      std::size_t digits = end + 1;
      if (SignAt(digits) != 0) ++digits;
      if (digits < source_.size() && IsDecimalCharacter(source_[digits]))
        end = BehindDigits(digits);
    }
    return end;
  }

  std::string Digits(std::size_t begin, std::size_t end) const {
    std::string digits = ToUtf8(source_.substr(begin, end - begin));
    std::erase(digits, '_');
    return digits;
  }

  Status ReadNumber(bool behind_dot) {
    constexpr CharactersView kPrefixes[] = {U"0b", U"0B", U"0o", U"0O", U"0x", U"0X"};
    constexpr int kBases[] = {2, 2, 8, 8, 16, 16};
    const auto is_hex = [](char32_t c) {
      return IsDecimalCharacter(c) || (c >= U'a' && c <= U'f') || (c >= U'A' && c <= U'F');
    };
    for (std::size_t i = 0; i < std::size(kPrefixes); ++i) {
      if (!Follows(kPrefixes[i])) continue;
      const std::size_t end = BehindDigits(at_ + 2, is_hex);
      if (end > at_ + 2) return AddInteger(Digits(at_ + 2, end), kBases[i], end);
    }
    const std::size_t end = BehindDigits(at_);
    const std::size_t whole = behind_dot ? end : BehindFraction(end);
    if (whole == end) return AddInteger(Digits(at_, end), 10, end);
    Add({.kind = TokenKind::kFloat, .number = std::strtod(Digits(at_, whole).c_str(), nullptr)});
    MoveTo(whole);
    return {};
  }

  Status AddInteger(const std::string& digits, int base, std::size_t end) {
    errno = 0;
    const std::int64_t integer = std::strtoll(digits.c_str(), nullptr, base);
    if (errno != 0)
      return Bad(fmt::format("{} is beyond 64 bits; write a smaller number", Shown(digits)));
    Add({.kind = TokenKind::kInteger, .integer = integer});
    MoveTo(end);
    return {};
  }

  Status ReadString(char32_t quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == U'\\' ? 2 : 1;
    if (end >= source_.size()) return Bad("a string has no end; close it with its quote");
    auto text = Unescaped(source_.substr(at_ + 1, end - at_ - 1));
    if (!text) return Bad(std::move(text).error().message);
    Add({.kind = TokenKind::kString, .text = *std::move(text)});
    MoveTo(end + 1);
    return {};
  }

  Status ReadSign(std::string& open) {
    constexpr CharactersView kSigns[] = {U"//", U"**", U"==", U"!=", U">=", U"<=", U"+", U"-", U"/",
                                         U"*",  U"%",  U"~",  U"[",  U"]",  U"(",  U")", U"{", U"}",
                                         U">",  U"<",  U"=",  U".",  U":",  U"|",  U",", U";"};
    for (const CharactersView sign : kSigns) {
      if (!Follows(sign)) continue;
      FORETOKEN_CHECK_OK(Balance(static_cast<char>(sign[0]), open));
      Add({.kind = TokenKind::kSign, .word = ToUtf8(sign)});
      MoveTo(at_ + sign.size());
      return {};
    }
    return Bad(
        fmt::format("'{}' has no meaning here; remove it", Shown(ToUtf8(source_.substr(at_, 1)))));
  }

  Status Balance(char sign, std::string& open) const {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(sign) != std::string_view::npos) open += sign;
    const std::size_t closed = kClose.find(sign);
    if (closed == std::string_view::npos) return {};
    if (open.empty() || open.back() != kOpen[closed])
      return Bad(fmt::format("'{}' closes no bracket; remove it", sign));
    open.pop_back();
    return {};
  }

  CharactersView source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool begins_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  const Characters text = WithPlainLineEnds(FromUtf8(source));
  if (text.size() > kMostCharacters)
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format("it has more than {} characters; use a shorter template", kMostCharacters));
  return Lexer(text).Run();
}

}  // namespace foretoken::text::jinja
