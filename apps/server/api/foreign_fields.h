// SPDX-License-Identifier: Apache-2.0
// server/api/foreign_fields.h: fields of other servers that foretoken does not have: one table that
// says how each is treated.
//
// A field that could change the text is refused, unless its value changes nothing. Any other field
// is accepted, and a notice in the reply says that it has no effect.
#pragma once

#include <string>
#include <vector>

#include "server/api/json_fields.h"

namespace foretoken::server {

// fields: those of the body of a completion or a chat. Errors go to them.
void ReadForeignFields(JsonFields& fields, bool chat, std::vector<std::string>& notices);

}  // namespace foretoken::server
