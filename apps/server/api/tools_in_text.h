// SPDX-License-Identifier: Apache-2.0
// server/api/tools_in_text.h: conversations with tools for templates that know none: the tools stand
// in the system's message, calls and results in the texts of messages.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/chat.h"

namespace foretoken::server {

// tools_json: OpenAI's list; empty: the conversation alone has calls. The form is that of
// calls::CallFormats()[0]. Messages without calls and results stay as they are.
[[nodiscard]] std::vector<ChatMessage> WithToolsInText(std::vector<ChatMessage> messages,
                                                       std::string_view tools_json);

}  // namespace foretoken::server
