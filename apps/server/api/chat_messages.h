// SPDX-License-Identifier: Apache-2.0
// server/api/chat_messages.h: reads the messages of a chat from JSON, as this server and others
// write them and as clients send them back.
#pragma once

#include <string>
#include <vector>

#include "foretoken/chat.h"
#include "server/api/json_fields.h"

namespace foretoken::server {

// Reads the field "messages" of the body, whose fields are `fields`. Errors go there. Members of
// messages other than roles and texts are kept as they were written, for the template.
std::vector<ChatMessage> ReadMessages(JsonFields& fields);

// A string, or a list of text parts; other members of the parts are ignored. An error names `where`
// and goes to `fields`.
std::string ReadContent(const Json& content, std::string_view where, JsonFields& fields);

}  // namespace foretoken::server
