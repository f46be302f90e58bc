// SPDX-License-Identifier: Apache-2.0
#include "server/api/body_schema.h"

#include <algorithm>

#include "foretoken/catalogue.h"

namespace foretoken::server {
namespace {

using NoteKind = Json::value_t;

// Null counts as absent, except where something must be there.
SchemaJson TypeOf(const char* type, bool required) {
  if (required) return {{"type", type}};
  return {{"type", SchemaJson::array({type, "null"})}};
}

SchemaJson NumbersOf(const FieldNote& note) {
  SchemaJson schema =
      TypeOf(note.kind == NoteKind::number_integer ? "integer" : "number", note.required);
  if (note.kind == NoteKind::number_integer) {
    schema["minimum"] = static_cast<std::int64_t>(note.least);
    schema["maximum"] = static_cast<std::int64_t>(note.most);
  } else {
    schema["minimum"] = note.least, schema["maximum"] = note.most;
  }
  return schema;
}

SchemaJson TextsOf(const FieldNote& note) {
  if (note.words.empty()) return TypeOf("string", note.required);
  SchemaJson words = note.words;
  if (!note.required) words.push_back(nullptr);
  return {{"enum", std::move(words)}};
}

// A field of another server.
SchemaJson ForeignOf(const FieldNote& note) {
  SchemaJson schema = SchemaJson::object();
  if (!note.only.empty()) {
    SchemaJson values = {nullptr, "", SchemaJson::array(), SchemaJson::object()};
    for (const SchemaJson& value : SchemaJson::parse(note.only))
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    schema["enum"] = std::move(values);
  }
  schema["description"] = note.only.empty()
                              ? "a field of other servers, which changes nothing here" +
                                    (note.about.empty() ? "" : ": " + note.about)
                              : "a field of other servers that is refused here: " + note.about;
  return schema;
}

SchemaJson KindOf(const FieldNote& note) {
  switch (note.kind) {
    case NoteKind::boolean:
      return TypeOf("boolean", note.required);
    case NoteKind::string:
      return TextsOf(note);
    case NoteKind::object:
      return TypeOf("object", note.required);
    case NoteKind::number_float:
    case NoteKind::number_integer:
      return NumbersOf(note);
    default:
      return SchemaJson::object();
  }
}

// Makes the schema of one body.
class BodySchemaMaker {
 public:
  BodySchemaMaker(std::string_view path, const FieldNotes& notes, const FieldNotes& chats)
      : path_(path), notes_(notes), chats_(chats) {}

  SchemaJson Object(const std::string& prefix) const {
    SchemaJson schema = {{"type", "object"}};
    SchemaJson& properties = schema["properties"] = SchemaJson::object();
    SchemaJson required = SchemaJson::array();
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
  void AddChoices(SchemaJson& schema) const {
    for (const std::vector<std::string>& names : notes_.choices()) {
      SchemaJson choice = SchemaJson::array();
      for (const std::string& name : names)
        choice.push_back({{"required", SchemaJson::array({name})},
                          {"properties", {{name, {{"not", {{"type", "null"}}}}}}}});
      schema["allOf"].push_back({{"anyOf", std::move(choice)}});
    }
  }

 private:
  // Where a note says no more than a name: that of the chat's field with this name.
  const FieldNote& Known(const FieldNote& note) const {
    if (note.kind != NoteKind::null || note.foreign) return note;
    for (const FieldNote& other : chats_.all())
      if (other.prefix.empty() && other.name == note.name) return other;
    return note;
  }

  const FieldText* TextOf(const FieldNote& note) const {
    const std::string whole = note.prefix + note.name;
    const FieldText* const text = FindFieldText(path_, whole);
    return text != nullptr || note.prefix != "options." ? text : FindFieldText(path_, note.name);
  }

  SchemaJson Property(const FieldNote& note) const {
    const FieldText* const text = TextOf(note);
    const bool formed = text != nullptr && *text->form != '\0';
    const FieldNote& known = formed ? note : Known(note);
    if (known.foreign) return ForeignOf(known);
    const std::string inner = note.prefix + note.name + ".";
    SchemaJson schema = formed ? SchemaJson::parse(text->form) : KindOf(known);
    if (!formed && known.kind == NoteKind::object) {
      // A chat's object has the members that it has there.
      const BodySchemaMaker maker(path_, &known == &note ? notes_ : chats_, chats_);
      if (maker.HasMembers(inner)) {
        schema = maker.Object(inner);
        if (!note.required) schema["type"] = SchemaJson::array({"object", "null"});
      }
    }
    if (formed && !note.required) schema = OrNull(std::move(schema));
    if (!known.otherwise.empty() && note.same_as.empty())
      schema["default"] = SchemaJson::parse(known.otherwise);
    if (text != nullptr) schema["description"] = text->about;
    if (!known.same_as.empty()) schema["description"] = "another name of `" + known.same_as + "`";
    return schema;
  }

  static SchemaJson OrNull(SchemaJson schema) {
    if (schema.empty()) return schema;
    return {{"anyOf", SchemaJson::array({std::move(schema), {{"type", "null"}}})}};
  }

  bool HasMembers(const std::string& prefix) const {
    return std::any_of(notes_.all().begin(), notes_.all().end(),
                       [&](const FieldNote& note) { return note.prefix == prefix; });
  }

  const std::string_view path_;
  const FieldNotes& notes_;
  const FieldNotes& chats_;
};

SchemaJson StrategyNames() {
  SchemaJson names = {"auto"};
  for (const StrategyInfo* const row : AllStrategies()) {
    names.push_back(row->name);
    for (const std::string_view alias : row->aliases) names.push_back(std::string(alias));
  }
  return names;
}

}  // namespace

SchemaJson BodySchema(std::string_view path, const FieldNotes& notes, const FieldNotes& chats) {
  const BodySchemaMaker maker(path, notes, chats);
  SchemaJson schema = maker.Object("");
  maker.AddChoices(schema);
  return schema;
}

SchemaJson SharedForms(int vocabulary_size) {
  SchemaJson forms = SchemaJson::parse(TextOfForms());
  if (vocabulary_size > 0) forms["Token"]["maximum"] = vocabulary_size - 1;
  forms["VerifyStrategy"]["enum"] = StrategyNames();
  return forms;
}

}  // namespace foretoken::server
