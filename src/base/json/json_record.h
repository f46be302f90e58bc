// SPDX-License-Identifier: Apache-2.0
// base/json/json_record.h: records of JSON files that are read and written by one description, a function that
// shows each field to a visitor:
//
//   constexpr auto kPassFields = [](auto& fields, auto& pass) {
//     fields.Integer("rows", 1, 4096, pass.rows);
//     fields.Number("us", 0, 1e12, pass.us);
//   };
//   Pass pass;
//   if (const auto wrong = ReadRecord(json, pass, kPassFields)) ...
//   auto written = WriteRecord(pass, kPassFields);
//
// All fields must be there and in range, and there must be no others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace foretoken {

// What is wrong with a record: where ("drafts[0].us"; "" for all of it), and why ("is not a string").
struct RecordError {
  std::string where, why;
};

// What records of a list are in the file: objects, or lists of their values without names.
enum class RecordForm { kObject, kRow };

// Takes the fields of an object one by one. The first thing that is wrong sticks, and nothing is read after
// it.
class RecordReader {
 public:
  // `json` and `error` must outlive this.
  RecordReader(const Json& json, std::string where, std::optional<RecordError>& error,
               RecordForm form = RecordForm::kObject)
      : json_(json), where_(std::move(where)), error_(error) {
    if (form == RecordForm::kObject && !json.is_object()) Bad("", "is not an object");
    if (form == RecordForm::kRow && !json.is_array()) Bad("", "is not a list");
  }

  bool good() const { return !error_; }
  bool Has(const char* name) const { return json_.contains(name); }

  template <typename T>
  void Integer(const char* name, std::type_identity_t<T> low, std::type_identity_t<T> high,
               T& out) {
    Value(name, low, high, out);
  }
  void Number(const char* name, double low, double high, double& out) {
    Value(name, low, high, out);
  }
  void Text(const char* name, std::size_t most, std::string& out) {
    const Json* const json = Take(name, Json::Kind::kString, "a string");
    if (json == nullptr) return;
    out = json->text();
    if (out.size() > most) Bad(name, "is longer than " + std::to_string(most) + " bytes");
  }
  // Absent where it is empty.
  void TextIfAny(const char* name, std::size_t most, std::string& out) {
    if (Has(name)) Text(name, most, out);
  }
  void Flag(const char* name, bool& out) {
    if (const Json* const json = Take(name, Json::Kind::kBoolean, "true or false"))
      out = json->boolean();
  }
  void Hash(const char* name, std::uint64_t& out) {
    std::string digits;
    Text(name, 16, digits);
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      return Bad(name, "is not a number of 16 hexadecimal digits");
    out = std::stoull(digits, nullptr, 16);
  }
  // Numbers, or whole ones.
  template <typename T>
  void Values(const char* name, std::size_t most, std::type_identity_t<T> low,
              std::type_identity_t<T> high, std::vector<T>& out) {
    const Json* const list = TakeList(name, most);
    if (list == nullptr) return;
    for (const Json& json : *list)
      if (!ReadValue(json, low, high, out.emplace_back()))
        return Bad(name, "holds something else than " + Range(low, high));
  }
  void Object(const char* name, auto& out, const auto& describe) {
    if (const Json* const json = Take(name)) Nested(*json, Path(name), out, describe);
  }
  // Null where it is not there, which is what `is_there` says of a record that is written.
  void ObjectOrNull(const char* name, bool /*is_there*/, auto& out, const auto& describe) {
    const Json* const json = Take(name);
    if (json != nullptr && !json->is_null()) Nested(*json, Path(name), out, describe);
  }
  void List(const char* name, std::size_t most, auto& out, const auto& describe,
            RecordForm form = RecordForm::kObject) {
    const Json* const list = TakeList(name, most);
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size() && good(); ++i)
      Nested((*list)[i], Path(name) + "[" + std::to_string(i) + "]", out.emplace_back(), describe,
             form);
  }
  void Bad(const char* name, std::string why) {
    if (good()) error_ = {Path(name), std::move(why)};
  }
  void End() {
    if (good() && taken_ != json_.size()) Bad("", "has fields that this version does not know");
  }

 private:
  std::string Path(const char* name) const {
    return where_.empty() || *name == '\0' ? where_ + name : where_ + "." + name;
  }
  const Json* Take(const char* name) {
    if (!good()) return nullptr;
    const bool is_row = json_.is_array() && taken_ < json_.size();
    const Json* const found = is_row ? &json_[taken_] : json_.find(name);
    if (found == nullptr) return Bad(name, "is not there"), nullptr;
    ++taken_;
    return found;
  }
  const Json* Take(const char* name, Json::Kind kind, const char* words) {
    const Json* const json = Take(name);
    if (json == nullptr || json->kind() == kind) return json;
    return Bad(name, std::string("is not ") + words), nullptr;
  }
  const Json* TakeList(const char* name, std::size_t most) {
    const Json* const json = Take(name, Json::Kind::kArray, "a list");
    if (json == nullptr || json->size() <= most) return json;
    return Bad(name, "has more than " + std::to_string(most) + " entries"), nullptr;
  }
  template <typename T>
  void Value(const char* name, T low, T high, T& out) {
    const Json* const json = Take(name);
    if (json != nullptr && !ReadValue(*json, low, high, out))
      Bad(name, "is not " + Range(low, high));
  }
  // False: it is of another kind, or out of range.
  template <typename T>
  static bool ReadValue(const Json& json, T low, T high, T& out) {
    const auto take = [&](auto value) {
      bool good = false;
      if constexpr (std::is_integral_v<T>)
        good = std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high);
      else
        good = value >= low && value <= high;
      if (good) out = static_cast<T>(value);
      return good;
    };
    if constexpr (std::is_integral_v<T>) {
      if (const auto value = json.natural()) return take(*value);
      const auto value = json.integer();
      return value && take(*value);
    } else {
      return json.is_number() && take(json.number());
    }
  }
  template <typename T>
  static std::string Range(T low, T high) {
    return (std::is_integral_v<T> ? "a whole number in [" : "a number in [") + Json(low).dump() +
           ", " + Json(high).dump() + "]";
  }
  void Nested(const Json& json, std::string where, auto& out, const auto& describe,
              RecordForm form = RecordForm::kObject) {
    RecordReader fields(json, std::move(where), error_, form);
    describe(fields, out);
    fields.End();
  }

  const Json& json_;
  const std::string where_;
  std::optional<RecordError>& error_;
  std::size_t taken_ = 0;
};

// Writes what RecordReader reads.
class RecordWriter {
 public:
  explicit RecordWriter(RecordForm form = RecordForm::kObject)
      : json_(form == RecordForm::kObject ? Json::object() : Json::array()) {}

  template <typename T>
  void Integer(const char* name, std::type_identity_t<T> /*low*/, std::type_identity_t<T> /*high*/,
               const T& value) {
    Put(name, value);
  }
  void Number(const char* name, double /*low*/, double /*high*/, double value) { Put(name, value); }
  void Text(const char* name, std::size_t /*most*/, const std::string& text) { Put(name, text); }
  void TextIfAny(const char* name, std::size_t /*most*/, const std::string& text) {
    if (!text.empty()) Put(name, text);
  }
  void Hash(const char* name, std::uint64_t hash) {
    std::string digits(16, '0');
    for (std::size_t i = digits.size(); i-- > 0; hash /= 16)
      digits[i] = "0123456789abcdef"[hash % 16];
    Put(name, std::move(digits));
  }
  void Object(const char* name, const auto& record, const auto& describe) {
    Put(name, Nested(record, describe));
  }
  void ObjectOrNull(const char* name, bool is_there, const auto& record, const auto& describe) {
    Put(name, is_there ? Nested(record, describe) : Json(nullptr));
  }
  void List(const char* name, std::size_t /*most*/, const auto& records, const auto& describe,
            RecordForm form = RecordForm::kObject) {
    Json list = Json::array();
    for (const auto& record : records) list.push_back(Nested(record, describe, form));
    Put(name, std::move(list));
  }

  Json Take() && { return std::move(json_); }

 private:
  void Put(const char* name, Json value) {
    if (json_.is_array())
      json_.push_back(std::move(value));
    else
      json_[name] = std::move(value);
  }
  static Json Nested(const auto& record, const auto& describe,
                     RecordForm form = RecordForm::kObject) {
    RecordWriter fields(form);
    describe(fields, record);
    return std::move(fields).Take();
  }

  Json json_;
};

// What is wrong with it; nothing if it was read.
std::optional<RecordError> ReadRecord(const Json& json, auto& record, const auto& describe) {
  std::optional<RecordError> error;
  RecordReader fields(json, "", error);
  if (!error) describe(fields, record);
  fields.End();
  return error;
}

Json WriteRecord(const auto& record, const auto& describe) {
  RecordWriter fields;
  describe(fields, record);
  return std::move(fields).Take();
}

}  // namespace foretoken
