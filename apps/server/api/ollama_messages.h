// SPDX-License-Identifier: Apache-2.0
// server/api/ollama_messages.h: the messages of Ollama's chats, as those of OpenAI's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// The JSON of a list of OpenAI's messages. list: the value of "messages", of which raw is the text.
// Calls get ids, which the results after them name. The first error goes to `error`; the text is
// then of no use. The time is linear in the text.
std::string MessagesOfOllama(const Json& list, std::string_view raw,
                             std::optional<ApiError>& error);

}  // namespace foretoken::server
