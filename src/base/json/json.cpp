// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/json/json_members.h"
#include "base/utf8.h"

namespace foretoken {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void WriteEscape(unsigned unit, std::string& out) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[unit >> shift & 0xF];
}

void WriteCharacter(char32_t code, std::string_view bytes, bool ascii, std::string& out) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
  const std::size_t named = code < 0x80 ? kNamed.find(static_cast<char>(code)) : kNamed.npos;
  if (named != kNamed.npos) {
    out += {'\\', kNames[named]};
  } else if (code < 0x20 || (ascii && code >= 0x7F && code < 0x10000)) {
    WriteEscape(code, out);
  } else if (ascii && code >= 0x10000) {
    WriteEscape(0xD7C0 + (code >> 10), out);
    WriteEscape(0xDC00 + (code & 0x3FF), out);
  } else {
    out += bytes;
  }
}

// Other characters than plain ones are looked at one by one. A char may have a sign, or none.
bool IsPlain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

void WriteText(std::string_view text, bool ascii, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), IsPlain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Character c = ReadUtf8(text);
    if (c.valid())
      WriteCharacter(c.code, text.substr(0, c.size), ascii, out);
    else
      WriteCharacter(0xFFFD, "\xEF\xBF\xBD", ascii, out);
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  out += '"';
}

// The fewest digits that mean the number, with ".0" or an exponent, so that it is read as no whole one.
void WriteNumber(double x, std::string& out) {
  if (!std::isfinite(x)) return void(out += "null");
  char written[32];
  const char* const end =
      std::to_chars(written, written + sizeof written, std::fabs(x), std::chars_format::scientific)
          .ptr;
  const char* const begin = written;
  const char* const e = std::find(begin, end, 'e');
  std::string digits(begin, begin + 1);
  if (e > begin + 2) digits.append(begin + 2, e);
  const int exponent = std::atoi(std::string(e + 1, end).c_str());
  if (std::signbit(x)) out += '-';
  const int n = static_cast<int>(digits.size()), point = exponent + 1;
  if (point > 0 && point <= 15) {
    if (n < point) digits.append(static_cast<std::size_t>(point - n), '0');
    out.append(digits, 0, static_cast<std::size_t>(point)).append(".");
    out += n > point ? digits.substr(static_cast<std::size_t>(point)) : "0";
  } else if (point > -4 && point <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  } else {
    out.append(digits, 0, 1);
    if (n > 1) out.append(".").append(digits, 1);
    out.append(e, end);
  }
}

}  // namespace

std::string QuotedJson(std::string_view text) {
  std::string out;
  WriteText(text, false, out);
  return out;
}

Json::Json(Kind kind) : kind_(kind) {
  if (kind == Kind::kArray) data_.elements = new std::vector<Json>;
  if (kind == Kind::kObject) data_.members = new Members;
}

Json::Json(std::initializer_list<Item> items) {
  const bool is_object = std::all_of(items.begin(), items.end(), [](const Item& item) {
    return item.json.is_array() && item.json.size() == 2 && item.json[0].is_string();
  });
  Json made = is_object ? object() : array(items);
  for (const Item& item : is_object ? items : std::initializer_list<Item>()) {
    std::vector<Json>& pair = *item.json.data_.elements;
    if (!made.contains(pair[0].text()))
      made.data_.members->Add(std::move(*pair[0].data_.text)) = std::move(pair[1]);
  }
  swap(made);
}

Json Json::array(std::initializer_list<Item> items) {
  Json made = array();
  made.data_.elements->reserve(items.size());
  for (const Item& item : items) made.data_.elements->push_back(std::move(item.json));
  return made;
}

Json::Json(const Json& other)
    : data_(other.data_),
      source_(other.source_),
      source_size_(other.source_size_),
      kind_(other.kind_) {
  if (kind_ == Kind::kString) data_.text = new std::string(*other.data_.text);
  if (kind_ == Kind::kArray) data_.elements = new std::vector<Json>(*other.data_.elements);
  if (kind_ == Kind::kObject) data_.members = new Members(*other.data_.members);
}

void Json::swap(Json& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(source_, other.source_);
  std::swap(source_size_, other.source_size_);
  std::swap(kind_, other.kind_);
}

void Json::Free() noexcept {
  if (kind_ == Kind::kString) delete data_.text;
  if (kind_ == Kind::kArray) delete data_.elements;
  if (kind_ == Kind::kObject) delete data_.members;
}

double Json::number() const {
  return kind_ == Kind::kInteger    ? static_cast<double>(data_.integer)
         : kind_ == Kind::kUnsigned ? static_cast<double>(static_cast<std::uint64_t>(data_.integer))
                                    : data_.number;
}

std::optional<std::int64_t> Json::integer() const {
  return kind_ == Kind::kInteger ? std::optional(data_.integer) : std::nullopt;
}

std::optional<std::uint64_t> Json::natural() const {
  const bool is_natural =
      kind_ == Kind::kUnsigned || (kind_ == Kind::kInteger && data_.integer >= 0);
  return is_natural ? std::optional(static_cast<std::uint64_t>(data_.integer)) : std::nullopt;
}

std::size_t Json::size() const {
  return is_object() ? data_.members->all.size() : is_array() ? data_.elements->size() : !is_null();
}

const Json* Json::begin() const {
  return is_array() ? data_.elements->data() : nullptr;
}

const Json* Json::end() const {
  return is_array() ? data_.elements->data() + data_.elements->size() : nullptr;
}

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  Touched();
  data_.elements->push_back(std::move(value));
}

std::span<const Json::Member> Json::members() const {
  return is_object() ? std::span<const Member>(data_.members->all) : std::span<const Member>();
}

const Json* Json::find(std::string_view name) const {
  return is_object() ? data_.members->Find(name) : nullptr;
}

Json* Json::find(std::string_view name) {
  if (is_object()) Touched();
  return is_object() ? data_.members->Find(name) : nullptr;
}

const Json& Json::at(std::string_view name) const {
  static const Json none;
  return at(name, none);
}

const Json& Json::at(std::string_view name, const Json& otherwise) const {
  const Json* const found = find(name);
  return found == nullptr ? otherwise : *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) *this = object();
  Json* const found = find(name);
  return found != nullptr ? *found : data_.members->Add(std::string(name));
}

void Json::update(const Json& other) {
  for (const Member& member : other.members()) (*this)[member.name] = member.value;
}

void Json::erase(std::string_view name) {
  if (find(name) == nullptr) return;
  Json left = object();
  for (Member& member : data_.members->all)
    if (member.name != name)
      left.data_.members->Add(std::move(member.name)) = std::move(member.value);
  swap(left);
}

bool operator==(const Json& a, const Json& b) {
  using Kind = Json::Kind;
  if (a.is_integer() && b.is_integer())
    return a.kind_ == b.kind_ && a.data_.integer == b.data_.integer;
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind_ != b.kind_ || a.size() != b.size()) return false;
  if (a.kind_ == Kind::kBoolean) return a.boolean() == b.boolean();
  if (a.kind_ == Kind::kString) return a.text() == b.text();
  const auto members = a.members();
  return std::equal(a.begin(), a.end(), b.begin()) &&
         std::all_of(members.begin(), members.end(), [&b](const Json::Member& member) {
           const Json* const other = b.find(member.name);
           return other != nullptr && *other == member.value;
         });
}

std::string Json::dump(const JsonStyle& style) const {
  std::string out;
  Write(style, 1, out);
  return out;
}

void Json::Write(const JsonStyle& style, int depth, std::string& out) const {
  const bool as_written = style.source == JsonStyle::Source::kAll;
  const bool numbers = style.source == JsonStyle::Source::kNumbers;
  if (source_ != nullptr && (as_written || (numbers && kind_ == Kind::kNumber)))
    return void(out += source());
  if (kind_ == Kind::kNull) out += "null";
  if (kind_ == Kind::kBoolean) out += boolean() ? "true" : "false";
  if (kind_ == Kind::kInteger) out += std::to_string(data_.integer);
  if (kind_ == Kind::kUnsigned) out += std::to_string(static_cast<std::uint64_t>(data_.integer));
  if (kind_ == Kind::kNumber) WriteNumber(data_.number, out);
  if (kind_ == Kind::kString) WriteText(text(), style.ascii, out);
  if (!is_structured()) return;
  const auto begin_line = [&](int level) {
    if (style.indent >= 0)
      out.append("\n").append(static_cast<std::size_t>(style.indent * level), ' ');
  };
  std::vector<const Member*> order;
  for (const Member& member : members()) order.push_back(&member);
  if (style.sorted)
    std::sort(order.begin(), order.end(),
              [](const Member* a, const Member* b) { return a->name < b->name; });
  out += is_array() ? '[' : '{';
  for (std::size_t i = 0; i < size(); ++i) {
    if (i > 0) out += as_written ? ", " : ",";
    begin_line(depth);
    if (is_object()) {
      WriteText(order[i]->name, style.ascii, out);
      out += as_written || style.indent >= 0 ? ": " : ":";
    }
    (is_object() ? order[i]->value : (*this)[i]).Write(style, depth + 1, out);
  }
  if (!empty()) begin_line(depth - 1);
  out += is_array() ? ']' : '}';
}

}  // namespace foretoken
