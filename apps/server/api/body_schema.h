// SPDX-License-Identifier: Apache-2.0
// server/api/body_schema.h: JSON Schemas of the bodies of requests, for documents: made of what their
// readers ask for (FieldNotes), and of a table that says what each field is and what forms those have
// that may be of several kinds.
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// A row of the table.
struct FieldText {
  // The paths that it is about, as beginnings with a space between them; "": all.
  std::string_view where;
  // The fields, with a space between them, and with the names of the objects around them:
  // "stream_options.include_usage".
  std::string_view fields;
  const char* about;  // a line of plain English (Markdown)
  // A JSON Schema, in place of what the reader asks for. "": that is enough.
  const char* form = "";
};
// The first row about the field; null: there is none.
const FieldText* FindFieldText(std::string_view path, std::string_view field);
std::string_view TextOfForms();  // the schemas that others refer to, as a JSON object

// The schema of the body of `path`. chats: the notes of a chat's body, whose fields other bodies may
// have.
Json BodySchema(std::string_view path, const FieldNotes& notes, const FieldNotes& chats);
// "components/schemas" of a document with such schemas. vocabulary_size: 0: not known.
Json SharedForms(int vocabulary_size);

}  // namespace foretoken::server
