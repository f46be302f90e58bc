// SPDX-License-Identifier: Apache-2.0
// server/api/json_fields.h: reads the body of a request, and the fields of an object by name.
//
// Each reader leaves `out` alone if the field is absent or null. The first error is kept and ends
// all further reading. Finish reports fields that no reader asked for. A field with several names
// may be given under any of them; values that differ are an error.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "foretoken/options.h"
#include "server/api/api_error.h"

namespace foretoken::server {

// What a reader asks for under a name.
struct FieldNote {
  std::string prefix;  // of its object: "" for the body, "stream_options."
  std::string name;
  Json::Kind kind = Json::Kind::kNull;  // null: values of several kinds
  double least = 0, most = 0;           // of numbers
  std::vector<std::string> words = {};  // the texts that it may be; empty: any
  std::string otherwise = {};           // what holds without it, as JSON; "": not known
  std::string same_as = {};             // the field of which this is another name
  bool required = false;                // an object without it is refused
  bool foreign = false;                 // see FindForeign
  std::string about = {}, only = {};
};

// While it lives, the thread's JsonFields note in it what their readers ask for, each name of an
// object once; objects that are absent are read as empty ones. So its reader makes a document of a
// body, from a body that is empty.
class FieldNotes {
 public:
  FieldNotes();
  ~FieldNotes();
  FieldNotes(const FieldNotes&) = delete;
  FieldNotes& operator=(const FieldNotes&) = delete;

  void Add(FieldNote note);
  // The object has no other members.
  void Close(const std::string& prefix) { closed_.push_back(prefix); }
  // Fields of the body of which one must be there.
  void AddChoice(std::vector<std::string> names) { choices_.push_back(std::move(names)); }
  // Marks a field that must be there, unless it is not known, or it is an object.
  void Require(const std::string& prefix, std::string_view name);

  const std::vector<FieldNote>& all() const { return notes_; }
  const std::vector<std::vector<std::string>>& choices() const { return choices_; }
  bool IsClosed(std::string_view prefix) const;

  static FieldNotes* OfThread();  // null: there are none

 private:
  FieldNote* Find(std::string_view prefix, std::string_view name);

  FieldNotes* const outer_;
  std::vector<FieldNote> notes_;
  std::vector<std::string> closed_;
  std::vector<std::vector<std::string>> choices_;
};

// Values whose written() is there as long as the text. Errors: the text is not one JSON object in
// UTF-8, has a member twice (one of them would be silently ignored), is nested too deeply, or has too
// many values.
[[nodiscard]] Parsed<Json> ReadJsonObject(std::string_view text);

class JsonFields {
 public:
  // `object` and `error` must outlive this object, and names must outlive the readers. prefix: for
  // names in errors, "speculative.".
  JsonFields(const Json& object, std::string prefix, std::optional<ApiError>& error)
      : object_(object), prefix_(std::move(prefix)), error_(error) {}

  bool failed() const { return error_.has_value(); }
  std::optional<ApiError>& error() { return error_; }  // for the fields of objects in this one
  void Bad(std::string_view name, std::string_view why, std::string code = {});
  void Refuse(ApiError error);
  // Null if the field is absent or null, or after an error.
  const Json* Find(std::string_view name);
  bool Has(std::string_view name) { return Find(name) != nullptr; }

  // One or several names of a field; the first is the canonical one. The texts must outlive it.
  class Names {
   public:
    Names(const char* name) : names_{name} {}
    Names(std::string_view name) : names_{name} {}
    Names(std::initializer_list<std::string_view> names) : names_(names) {}
    auto begin() const { return names_.begin(); }
    auto end() const { return names_.end(); }

   private:
    std::vector<std::string_view> names_;
  };

  // `out`: T or optional<T>. True: the field was given.
  template <typename T>
  bool Integer(const Names& names, std::int64_t least, std::int64_t most, T& out) {
    Note(names, {.kind = Json::Kind::kInteger,
                 .least = static_cast<double>(least),
                 .most = static_cast<double>(most),
                 .otherwise = JsonOf(out)});
    const auto value = Agreed<std::int64_t>(
        names, [&](std::string_view name) { return ReadInteger(name, least, most); });
    if (value) out = static_cast<int>(*value);
    return value.has_value();
  }
  template <typename T>
  bool Number(const Names& names, double least, double most, T& out) {
    Note(names,
         {.kind = Json::Kind::kNumber, .least = least, .most = most, .otherwise = JsonOf(out)});
    const auto value =
        Agreed<double>(names, [&](std::string_view name) { return ReadNumber(name, least, most); });
    if (value) out = static_cast<float>(*value);
    return value.has_value();
  }
  template <typename T>
  bool Switch(std::string_view name, T& out) {
    Note(name, {.kind = Json::Kind::kBoolean, .otherwise = JsonOf(out)});
    const Json* const value = ReadKind(name, Json::Kind::kBoolean);
    if (value != nullptr) out = value->boolean();
    return value != nullptr;
  }
  bool Text(const Names& names, std::string& out) {
    Note(names, {.kind = Json::Kind::kString});
    const auto value = Agreed<std::string>(names, [&](std::string_view name) {
      const Json* const text = ReadKind(name, Json::Kind::kString);
      return text != nullptr ? std::optional(text->text()) : std::nullopt;
    });
    if (value) out = *value;
    return value.has_value();
  }
  // One of these texts. noun: for errors, "a form".
  bool OneOf(std::string_view name, std::string_view noun, std::span<const std::string_view> words,
             std::string& out);
  // An error: one of these fields of the body must be there.
  void Missing(const Names& names, std::string_view why);
  // Null if it is absent; an error if it has another type.
  const Json* Object(std::string_view name) { return ReadKind(name, Json::Kind::kObject); }

  // A field that is accepted and changes nothing, whatever its value is.
  void Idle(std::string_view name) { NoteIdle(name, Find(name)); }
  // As much of another field: value is null where it is absent, or has its effect.
  void NoteIdle(std::string_view name, const Json* value) const;

  // A field of other servers: known, but not suggested for a mistyped name. For documents: what becomes
  // of it, and the values that are not refused, as a JSON list ("": all).
  const Json* FindForeign(std::string_view name, std::string_view about = {},
                          std::string_view only = {});
  // Reports the first field that nobody asked for; of the first few, one whose name is near to a
  // known one.
  void Finish();
  // The first few fields that nobody asked for. A name near to that of an absent field is an error.
  std::vector<std::string> Others();

  // Accepts 4 and 4.0, within 64 bits.
  static std::optional<std::int64_t> WholeNumber(const Json& value);
  // A value for an error message, short and on one line.
  static std::string Shown(const Json& value);
  // A name from a body for a line of text: plain ASCII, of bounded length.
  static std::string ShownName(const std::string& name);

 private:
  std::optional<std::int64_t> ReadInteger(std::string_view name, std::int64_t least,
                                          std::int64_t most);
  std::optional<double> ReadNumber(std::string_view name, double least, double most);
  // The value that `read` makes of the field with these names.
  template <typename T, typename Read>
  std::optional<T> Agreed(const Names& names, const Read& read) {
    std::optional<T> agreed;
    std::string_view first;
    for (const std::string_view name : names) {
      const std::optional<T> value = read(name);
      if (agreed && value && *agreed != *value) Differ(name, first);
      if (!agreed && value) agreed = value, first = name;
    }
    return failed() ? std::nullopt : agreed;
  }
  void Differ(std::string_view name, std::string_view other);
  std::vector<std::string> Unknown() const;
  std::string_view Nearest(const std::string& name) const;
  void BadName(const std::string& name);
  const Json* ReadKind(std::string_view name, Json::Kind kind);
  void Note(const Names& names, const FieldNote& note) const;
  // What holds if a field is absent; nothing where the reader has no value for that, or nobody notes it.
  template <typename T>
  static std::string JsonOf(const T& value) {
    if (FieldNotes::OfThread() == nullptr) return {};
    if constexpr (requires { value.has_value(); })
      return value ? JsonText(*value) : std::string();
    else
      return JsonText(value);
  }
  static std::string JsonText(bool value) { return value ? "true" : "false"; }
  static std::string JsonText(int value) { return std::to_string(value); }
  static std::string JsonText(float value);

  const Json& object_;
  const std::string prefix_;
  std::optional<ApiError>& error_;
  std::vector<std::string_view> known_, foreign_;
};

// Reads a body: read(fields, call) takes the fields that it knows, and any other one is an error.
template <typename Call>
Parsed<Call> ReadBody(std::string_view body, const auto& read) {
  const Parsed<Json> json = ReadJsonObject(body);
  if (!json) return Refuse(json.error());
  std::optional<ApiError> error;
  JsonFields fields(*json, "", error);
  Call call{};
  read(fields, call);
  fields.Finish();
  if (error) return Refuse(*std::move(error));
  return call;
}

}  // namespace foretoken::server
