// SPDX-License-Identifier: Apache-2.0
// server/api/reply_forms.h: JSON Schemas of replies, for documents: of a table in reply_texts.cpp,
// which tests/server/replies_test.py compares with what the writers write.
//
// The table is a list of `Name = TYPE`, where TYPE is
//   string, integer, number, boolean, null, any    a kind of value
//   'text', 0, true                                this value
//   Name                                           a form of the table
//   [TYPE]                                         a list; []: an empty one
//   {name: TYPE, name?: TYPE, *: TYPE}             an object with these members and no others; `?`: it
//                                                  may be absent; `*`: all names that are not there;
//                                                  `/`: names with a slash
//   {...Name, ...?Name}                            with the members of another object, which stands
//                                                  before it; `?`: all of them may be absent
//   TYPE | TYPE                                    one of them
// A form whose name begins with _ is only part of others.
#pragma once

#include <string_view>

#include "server/api/body_schema.h"

namespace foretoken::server {

std::string_view TextOfReplies();

// The schemas of forms, by their names. REQUIRES: the text has the form above; what follows a fault is
// left out.
Json ReplyForms(std::string_view text);

// A reference to a form.
Json ReplyForm(std::string_view name);

}  // namespace foretoken::server
