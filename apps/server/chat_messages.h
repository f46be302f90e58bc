// SPDX-License-Identifier: Apache-2.0
// server/chat_messages.h: the messages of a chat, JSON to values, as this server and others write
// them and as clients send them back.
#pragma once

#include <string>
#include <vector>

#include "foretoken/chat.h"
#include "server/json_fields.h"

namespace foretoken::server {

// fields: of the body; its field "messages". Errors go to `fields`. Notices name what messages have
// beside roles and texts, which no template writes.
std::vector<ChatMessage> ReadMessages(JsonFields& fields, std::optional<ApiError>& error,
                                      std::vector<std::string>& notices);

// A text, or a list of parts that are texts; other members of the parts are left out. An error of
// `where` goes to `fields`.
std::string ReadContent(const Json& content, std::string_view where, JsonFields& fields);

}  // namespace foretoken::server
