// SPDX-License-Identifier: Apache-2.0
// base/json/json.h: a JSON value whose objects keep the order of their members.
//
//   const auto body = ReadJson(text, {.most_depth = 16});  // base/json/json_reader.h
//   Json reply = {{"object", "list"}, {"data", Json::array()}};
//   reply["data"].push_back({{"id", 1}});
//   const std::string line = reply.dump();
//
// In braces, a list of pairs that each begin with a text is an object, and any other is an array.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace foretoken {

// A text as a string of JSON, in its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string QuotedJson(std::string_view text);

struct JsonStyle {
  int indent = -1;      // spaces for each level; -1: one line without spaces
  bool ascii = false;   // escapes what is not ASCII
  bool sorted = false;  // members by their names
  // What is as it was written in the text that it was read from, which must still be there (JsonLimits::
  // keeps_text). kAll: ", " and ": " are between parts that were made or changed since then.
  enum class Source : std::uint8_t { kNone, kNumbers, kAll } source = Source::kNone;
};

class Json {
 public:
  // kUnsigned: a whole number that only 64 bits without a sign hold; kNumber: all that are not whole
  // or beyond 64 bits.
  enum class Kind : std::uint8_t {
    kNull,
    kBoolean,
    kInteger,
    kUnsigned,
    kNumber,
    kString,
    kArray,
    kObject
  };
  struct Member;
  struct Item;  // of a list in braces

  Json() {}
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Json(T value) : kind_(Kind::kBoolean) {
    data_.boolean = value;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : kind_(Kind::kInteger) {
    data_.integer = static_cast<std::int64_t>(value);
    if (std::is_unsigned_v<T> && data_.integer < 0) kind_ = Kind::kUnsigned;
  }
  template <std::floating_point T>
  Json(T value) : kind_(Kind::kNumber) {
    data_.number = static_cast<double>(value);
  }
  template <typename T>
  requires std::constructible_from<std::string, T> &&
      (!std::integral<std::remove_cvref_t<T>>)Json(T&& text)
      : kind_(Kind::kString) {
    data_.text = new std::string(std::forward<T>(text));
  }
  template <typename T>
  Json(std::span<const T> values) : Json(array()) {
    for (const T& value : values) push_back(value);
  }
  template <typename T>
  Json(const std::vector<T>& values) : Json(std::span<const T>(values)) {}
  Json(std::initializer_list<Item> items);
  Json(const Json& other);
  Json(Json&& other) noexcept { swap(other); }
  Json& operator=(Json other) noexcept { return swap(other), *this; }
  ~Json() {
    if (kind_ >= Kind::kString) Free();
  }
  void swap(Json& other) noexcept;

  static Json array() { return Json(Kind::kArray); }
  static Json array(std::initializer_list<Item> items);
  static Json object() { return Json(Kind::kObject); }

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_boolean() const { return kind_ == Kind::kBoolean; }
  bool is_integer() const { return kind_ == Kind::kInteger || kind_ == Kind::kUnsigned; }
  bool is_number() const { return is_integer() || kind_ == Kind::kNumber; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_structured() const { return is_array() || is_object(); }

  bool boolean() const { return data_.boolean; }           // REQUIRES: is_boolean()
  double number() const;                                   // REQUIRES: is_number()
  const std::string& text() const { return *data_.text; }  // REQUIRES: is_string()
  std::optional<std::int64_t> integer() const;             // a whole number of 64 bits
  std::optional<std::uint64_t> natural() const;            // ... that is not below 0

  // The number of elements or members; 0 for null, 1 for others.
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  // The elements of an array; none for others.
  const Json* begin() const;
  const Json* end() const;
  // REQUIRES: is_array(), i < size().
  const Json& operator[](std::size_t i) const { return (*data_.elements)[i]; }
  Json& operator[](std::size_t i) { return Touched(), (*data_.elements)[i]; }
  const Json& front() const { return (*this)[0]; }
  const Json& back() const { return (*this)[size() - 1]; }
  Json& back() { return (*this)[size() - 1]; }
  // REQUIRES: null, which becomes an array, or an array.
  void push_back(Json value);

  // The members of an object in their order; none for others.
  std::span<const Member> members() const;
  // Null: there is no such member, or this is no object.
  const Json* find(std::string_view name) const;
  Json* find(std::string_view name);
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // A member, or null where there is none; or what is given for that.
  const Json& at(std::string_view name) const;
  const Json& at(std::string_view name, const Json& otherwise) const;
  // A member, which is made if there is none. REQUIRES: null, which becomes an object, or an object.
  Json& operator[](std::string_view name);
  // Adds the members of another object, or replaces those with their names.
  void update(const Json& other);
  void erase(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD, and numbers that are not finite become null.
  std::string dump(const JsonStyle& style = {}) const;
  std::string written() const { return dump({.source = JsonStyle::Source::kAll}); }
  // What written() gives if nothing was changed since the value was read; otherwise empty.
  std::string_view source() const { return {source_, source_size_}; }

  // Numbers are equal by value, and objects whatever the order of their members.
  friend bool operator==(const Json& a, const Json& b);
  friend bool operator==(const Json& a, std::string_view text) {
    return a.is_string() && a.text() == text;
  }
  friend bool operator==(const Json& a, const char* text) { return a == std::string_view(text); }

 private:
  friend class JsonReader;
  struct Members;

  explicit Json(Kind kind);
  void Free() noexcept;
  void Touched() { source_ = nullptr, source_size_ = 0; }
  void Write(const JsonStyle& style, int depth, std::string& out) const;

  union {
    bool boolean;
    std::int64_t integer;
    double number;
    std::string* text;
    std::vector<Json>* elements;
    Members* members;
  } data_ = {.integer = 0};
  const char* source_ = nullptr;
  std::uint32_t source_size_ = 0;
  Kind kind_ = Kind::kNull;
};

struct Json::Member {
  std::string name;
  Json value;
};

struct Json::Item {
  template <typename T>
  requires std::constructible_from<Json, T> Item(T&& value) : json(std::forward<T>(value)) {}
  Item(std::initializer_list<Item> items) : json(items) {}

  mutable Json json;  // taken by the list
};

}  // namespace foretoken
