// SPDX-License-Identifier: Apache-2.0
// server/api/responses_input.h: the items of a request for OpenAI's responses, as the messages of a
// chat.
#pragma once

#include <optional>
#include <string>

#include "server/api/json_fields.h"

namespace foretoken::server {

// Why nothing can be referred to by its id.
inline constexpr const char* kNothingStored =
    "responses are not stored here; leave it out and send the items of earlier turns in input";

// A JSON list of messages. input: the field's value; instructions: the first message, if there are
// any. An answer's text and the calls after it are one message, as chats have them; reasoning is left
// out. Errors name the item.
[[nodiscard]] std::string MessagesJson(const std::optional<std::string>& instructions,
                                       const Json& input, JsonFields& fields,
                                       std::optional<ApiError>& error);

}  // namespace foretoken::server
