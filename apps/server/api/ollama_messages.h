// SPDX-License-Identifier: Apache-2.0
// server/api/ollama_messages.h: the messages of Ollama's chats, as those of OpenAI's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// A list of OpenAI's messages. list: the value of "messages". Calls get ids, which the results after them
// name. The first error goes to `error`; the list is then of no use.
Json MessagesOfOllama(const Json& list, std::optional<ApiError>& error);

}  // namespace foretoken::server
