// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json/json_members.h"
#include "base/utf8.h"

namespace foretoken {
namespace {

// About the memory of what has a small text: "{}," takes 24 times its size.
constexpr std::size_t kValueBytes = 24;   // a place in an array, some of which are free
constexpr std::size_t kListBytes = 40;    // an array or an object beside its place
constexpr std::size_t kMemberBytes = 96;  // a member beside its name and its value
constexpr std::size_t kTextBytes = 32;    // a text beside its characters

constexpr std::string_view kSpace = " \t\n\r", kByteOrderMark = "\xEF\xBB\xBF";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void AppendUtf8(unsigned code, std::string& out) {
  const auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
  const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  put(kLeads[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) put(0x80 | (code >> (6 * i) & 0x3F));
}

// Whether a number, which a double cannot hold, is too small for one and not too large.
bool IsTiny(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  long exponent = 0;
  std::string_view written = number.substr(std::min(e + 1, number.size()));
  if (written.starts_with('+')) written.remove_prefix(1);
  const auto read = std::from_chars(written.data(), written.data() + written.size(), exponent);
  if (read.ec == std::errc::result_out_of_range) return written.starts_with('-');
  return static_cast<long>(point) - static_cast<long>(first) + exponent < 0;
}

}  // namespace

class JsonReader {
 public:
  JsonReader(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  tl::expected<Json, JsonError> Read() {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    if (!ReadValues()) return tl::unexpected(std::move(error_));
    return std::move(root_);
  }

 private:
  // The character behind white space; 0 at the end.
  char Next() {
    at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
    return Peek();
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char ClosingOf(const Json& value) const { return value.is_array() ? ']' : '}'; }

  bool Fail(JsonError error) { return error_ = std::move(error), false; }
  bool BadAt(std::size_t at) { return Fail({JsonError::Kind::kSyntax, at + 1}); }
  bool Charge(std::size_t bytes) {
    charged_ += bytes;
    return charged_ <= limits_.most_memory || Fail({JsonError::Kind::kMemory});
  }

  bool ReadValues() {
    Json* place = &root_;
    for (;;) {
      if (!ReadValue(*place)) return false;
      const bool is_open = !open_.empty() && open_.back() == place;
      if (is_open && Next() != ClosingOf(*place)) {
        if ((place = NextPlace()) == nullptr) return false;
        continue;
      }
      while (!open_.empty() && Next() == ClosingOf(*open_.back())) Close();
      if (open_.empty()) return Next() == '\0' && at_ == text_.size() ? true : BadToken();
      if (Peek() != ',') return BadToken();
      ++at_;
      if ((place = NextPlace()) == nullptr) return false;
    }
  }

  // Where the next value of the innermost array or object goes; null after an error.
  Json* NextPlace() {
    Json& outer = *open_.back();
    if (outer.is_array()) return &outer.data_.elements->emplace_back();
    std::string name;
    if (Next() != '"') return BadToken(), nullptr;
    if (!ReadText(name)) return nullptr;
    if (!Charge(kMemberBytes + kTextBytes + name.size())) return nullptr;
    Json* member = outer.data_.members->Find(name);
    const bool distinct =
        limits_.distinct == JsonLimits::Distinct::kAll ||
        (limits_.distinct == JsonLimits::Distinct::kOutermost && open_.size() == 1);
    if (Next() != ':') return BadToken(), nullptr;
    if (member != nullptr && distinct) return Twice(std::move(name)), nullptr;
    ++at_;
    if (member == nullptr) return &outer.data_.members->Add(std::move(name));
    *member = Json();
    return member;
  }

  bool Twice(std::string name) {
    std::vector<std::string> path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      path.push_back(open_[i]->is_array() ? std::to_string(open_[i]->size() - 1)
                                          : open_[i]->members().back().name);
    return Fail({JsonError::Kind::kTwice, 0, std::move(name), std::move(path)});
  }

  // A value without parts, or the beginning of one with parts.
  bool ReadValue(Json& value) {
    const char c = Next();
    const std::size_t begin = at_;
    if (limits_.keeps_text) value.source_ = text_.data() + begin;
    if (c == '{' || c == '[')
      return Open(value, c == '{' ? Json::Kind::kObject : Json::Kind::kArray);
    if (!Charge(kValueBytes) || !ReadScalar(c, value)) return false;
    if (limits_.keeps_text) value.source_size_ = static_cast<std::uint32_t>(at_ - begin);
    return true;
  }

  bool ReadScalar(char first, Json& value) {
    if (first == '-' || IsDigit(first)) return ReadNumber(value);
    if (first == 'n') return ReadWord("null");
    if (first != '"' && first != 't' && first != 'f') return BadToken();
    Json made = first == '"' ? Json("") : Json(first == 't');
    const bool good = first == '"'
                          ? ReadText(*made.data_.text) && Charge(kTextBytes + made.text().size())
                          : ReadWord(first == 't' ? "true" : "false");
    Take(made, value);
    return good;
  }

  static void Take(Json& made, Json& value) {
    std::swap(made.data_, value.data_);
    std::swap(made.kind_, value.kind_);
  }

  bool Open(Json& value, Json::Kind kind) {
    if (open_.size() == limits_.most_depth) return Fail({JsonError::Kind::kDepth});
    ++at_;
    Json made(kind);
    Take(made, value);
    open_.push_back(&value);
    return Charge(kValueBytes + kListBytes);
  }

  void Close() {
    Json& value = *open_.back();
    open_.pop_back();
    ++at_;
    if (limits_.keeps_text)
      value.source_size_ = static_cast<std::uint32_t>(text_.data() + at_ - value.source_);
  }

  // What stands here cannot stand here. It is looked at to its end, as it may be wrong in itself.
  bool BadToken() {
    const char c = Peek();
    std::string text;
    Json number;
    const bool good = c == '"'                 ? ReadText(text)
                      : c == '-' || IsDigit(c) ? ReadNumber(number)
                      : c == 't'               ? ReadWord("true")
                      : c == 'f'               ? ReadWord("false")
                      : c == 'n'               ? ReadWord("null")
                                               : BadAt(at_);
    return good ? BadAt(at_ - 1) : false;
  }

  bool ReadWord(std::string_view word) {
    for (const char c : word) {
      if (Peek() != c) return BadAt(at_);
      ++at_;
    }
    return true;
  }

  bool SkipDigits() {
    if (!IsDigit(Peek())) return BadAt(at_);
    while (IsDigit(Peek())) ++at_;
    return true;
  }

  bool ReadNumber(Json& value) {
    const std::size_t begin = at_;
    bool is_whole = true;
    if (Peek() == '-') ++at_;
    if (Peek() == '0')
      ++at_;
    else if (!SkipDigits())
      return false;
    if (Peek() == '.') {
      ++at_, is_whole = false;
      if (!SkipDigits()) return false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_, is_whole = false;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!SkipDigits()) return false;
    }
    return SetNumber(text_.substr(begin, at_ - begin), is_whole, value);
  }

  bool SetNumber(std::string_view written, bool is_whole, Json& value) {
    const char* const end = written.data() + written.size();
    const auto holds = [&](auto number) {
      const auto read = std::from_chars(written.data(), end, number);
      if (read.ec == std::errc::result_out_of_range && (is_whole || !IsTiny(written))) return false;
      Json made(read.ec == std::errc() ? number : decltype(number){});
      Take(made, value);
      return true;
    };
    if (is_whole && (written[0] == '-' ? holds(std::int64_t{}) : holds(std::uint64_t{})))
      return true;
    is_whole = false;
    return holds(double{}) || BadAt(at_ - 1);
  }

  bool ReadText(std::string& out) {
    for (++at_;;) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && IsPlain(text_[at_])) ++at_;
      out.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return BadAt(at_);
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (c == '\\') {
        if (!ReadEscape(out)) return false;
        continue;
      }
      const Utf8Character read = ReadUtf8(text_.substr(at_));
      if (static_cast<unsigned char>(c) < 0x20) return BadAt(at_);
      if (!read.valid()) return BadAt(at_ + (BeginsCharacter(c) ? read.size : 0));
      out.append(text_, at_, read.size);
      at_ += read.size;
    }
  }

  static bool IsPlain(char c) { return c >= 0x20 && c != '"' && c != '\\'; }
  static bool BeginsCharacter(char c) {
    return static_cast<unsigned char>(c) >= 0xC2 && static_cast<unsigned char>(c) <= 0xF4;
  }

  bool ReadEscape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    ++at_;
    const char c = Peek();
    const std::size_t named = at_ < text_.size() ? kNames.find(c) : kNames.npos;
    if (named == kNames.npos && c != 'u') return BadAt(at_);
    ++at_;
    if (c != 'u') return out += kMeant[named], true;
    unsigned code = 0, second = 0;
    if (!ReadUnit(code)) return false;
    if (code >= 0xDC00 && code < 0xE000) return BadAt(at_ - 1);
    if (code >= 0xD800 && code < 0xDC00) {
      if (!ReadWord("\\u") || !ReadUnit(second)) return false;
      if (second < 0xDC00 || second >= 0xE000) return BadAt(at_ - 1);
      code = 0x10000 + ((code & 0x3FF) << 10 | (second & 0x3FF));
    }
    return AppendUtf8(code, out), true;
  }

  bool ReadUnit(unsigned& unit) {
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = HexValue(Peek());
      if (digit < 0) return BadAt(at_);
      unit = unit << 4 | static_cast<unsigned>(digit);
    }
    return true;
  }

  const std::string_view text_;
  const JsonLimits& limits_;
  std::size_t at_ = 0, charged_ = 0;
  Json root_;
  std::vector<Json*> open_;  // the arrays and objects around the next value
  JsonError error_{};
};

tl::expected<Json, JsonError> ReadJson(std::string_view text, const JsonLimits& limits) {
  return JsonReader(text, limits).Read();
}

Json JsonOrNull(std::string_view text) {
  return ReadJson(text).value_or(Json());
}

}  // namespace foretoken
