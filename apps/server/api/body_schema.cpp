// SPDX-License-Identifier: Apache-2.0
#include "server/api/body_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json_reader.h"
#include "foretoken/catalogue.h"
#include "server/api/body_limits.h"

namespace foretoken::server {
namespace {

using NoteKind = Json::Kind;

// A text of the table, with numbers in place of the names of limits.
std::string Filled(std::string_view text) {
  std::string filled(text);
  for (const BodyLimit& limit : kBodyLimits) {
    const std::string name = fmt::format("<{}>", limit.name), number = std::to_string(limit.most);
    for (std::size_t at = 0; (at = filled.find(name, at)) != std::string::npos;)
      filled.replace(at, name.size(), number);
  }
  return filled;
}

// Null counts as absent, except where something must be there.
Json TypeOf(const char* type, bool required) {
  if (required) return {{"type", type}};
  return {{"type", Json::array({type, "null"})}};
}

Json NumbersOf(const FieldNote& note) {
  Json schema = TypeOf(note.kind == NoteKind::kInteger ? "integer" : "number", note.required);
  if (note.kind == NoteKind::kInteger) {
    schema["minimum"] = static_cast<std::int64_t>(note.least);
    schema["maximum"] = static_cast<std::int64_t>(note.most);
  } else {
    schema["minimum"] = note.least, schema["maximum"] = note.most;
  }
  return schema;
}

Json TextsOf(const FieldNote& note) {
  if (note.words.empty()) return TypeOf("string", note.required);
  Json words = note.words;
  if (!note.required) words.push_back(nullptr);
  return {{"enum", std::move(words)}};
}

// A field of another server.
Json ForeignOf(const FieldNote& note) {
  Json schema = Json::object();
  if (!note.only.empty()) {
    Json values = {nullptr, "", Json::array(), Json::object()};
    const Json only = JsonOrNull(note.only);
    for (const Json& value : only)
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    schema["enum"] = std::move(values);
  }
  schema["description"] = note.only.empty()
                              ? "a field of other servers, which changes nothing here" +
                                    (note.about.empty() ? "" : ": " + note.about)
                              : "a field of other servers that is refused here: " + note.about;
  return schema;
}

Json KindOf(const FieldNote& note) {
  switch (note.kind) {
    case NoteKind::kBoolean:
      return TypeOf("boolean", note.required);
    case NoteKind::kString:
      return TextsOf(note);
    case NoteKind::kObject:
      return TypeOf("object", note.required);
    case NoteKind::kNumber:
    case NoteKind::kInteger:
      return NumbersOf(note);
    default:
      return Json::object();
  }
}

// Makes the schema of one body.
class BodySchemaMaker {
 public:
  BodySchemaMaker(std::string_view path, const FieldNotes& notes, const FieldNotes& chats)
      : path_(path), notes_(notes), chats_(chats) {}

  Json Object(const std::string& prefix) const {
    Json schema = {{"type", "object"}};
    Json& properties = schema["properties"] = Json::object();
    Json required = Json::array();
    for (const FieldNote& note : notes_.all()) {
      if (note.prefix != prefix) continue;
      properties[note.name] = Property(note);
      if (note.required) required.push_back(note.name);
    }
    if (!required.empty()) schema["required"] = std::move(required);
    if (notes_.IsClosed(prefix)) schema["additionalProperties"] = {{"type", "null"}};
    return schema;
  }

  // One of several fields must be there, and not be null.
  void AddChoices(Json& schema) const {
    for (const std::vector<std::string>& names : notes_.choices()) {
      Json choice = Json::array();
      for (const std::string& name : names)
        choice.push_back({{"required", Json::array({name})},
                          {"properties", {{name, {{"not", {{"type", "null"}}}}}}}});
      schema["allOf"].push_back({{"anyOf", std::move(choice)}});
    }
  }

 private:
  // Where a note says no more than a name: that of the chat's field with this name.
  const FieldNote& Known(const FieldNote& note) const {
    if (note.kind != NoteKind::kNull || note.foreign) return note;
    for (const FieldNote& other : chats_.all())
      if (other.prefix.empty() && other.name == note.name) return other;
    return note;
  }

  const FieldText* TextOf(const FieldNote& note) const {
    const std::string whole = note.prefix + note.name;
    const FieldText* const text = FindFieldText(path_, whole);
    return text != nullptr || note.prefix != "options." ? text : FindFieldText(path_, note.name);
  }

  Json Property(const FieldNote& note) const {
    const FieldText* const text = TextOf(note);
    const bool formed = text != nullptr && *text->form != '\0';
    const FieldNote& known = formed ? note : Known(note);
    if (known.foreign) return ForeignOf(known);
    const std::string inner = note.prefix + note.name + ".";
    Json schema = formed ? JsonOrNull(Filled(text->form)) : KindOf(known);
    if (!formed && known.kind == NoteKind::kObject) {
      // A chat's object has the members that it has there.
      const BodySchemaMaker maker(path_, &known == &note ? notes_ : chats_, chats_);
      if (maker.HasMembers(inner)) {
        schema = maker.Object(inner);
        if (!note.required) schema["type"] = Json::array({"object", "null"});
      }
    }
    if (formed && !note.required) schema = OrNull(std::move(schema));
    if (!known.otherwise.empty() && note.same_as.empty())
      schema["default"] = JsonOrNull(known.otherwise);
    if (text != nullptr) schema["description"] = Filled(text->about);
    if (!known.same_as.empty()) schema["description"] = "another name of `" + known.same_as + "`";
    return schema;
  }

  static Json OrNull(Json schema) {
    if (schema.empty()) return schema;
    return {{"anyOf", Json::array({std::move(schema), {{"type", "null"}}})}};
  }

  bool HasMembers(const std::string& prefix) const {
    return std::any_of(notes_.all().begin(), notes_.all().end(),
                       [&](const FieldNote& note) { return note.prefix == prefix; });
  }

  const std::string_view path_;
  const FieldNotes& notes_;
  const FieldNotes& chats_;
};

Json StrategyNames() {
  Json names = {"auto"};
  for (const StrategyInfo* const row : AllStrategies()) {
    names.push_back(row->name);
    for (const std::string_view alias : row->aliases) names.push_back(std::string(alias));
  }
  return names;
}

}  // namespace

Json BodySchema(std::string_view path, const FieldNotes& notes, const FieldNotes& chats) {
  const BodySchemaMaker maker(path, notes, chats);
  Json schema = maker.Object("");
  maker.AddChoices(schema);
  return schema;
}

Json SharedForms(int vocabulary_size) {
  Json forms = JsonOrNull(Filled(TextOfForms()));
  if (vocabulary_size > 0) forms["Token"]["maximum"] = vocabulary_size - 1;
  forms["VerifyStrategy"]["enum"] = StrategyNames();
  return forms;
}

}  // namespace foretoken::server
