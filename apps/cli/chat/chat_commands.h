// SPDX-License-Identifier: Apache-2.0
// cli/chat/chat_commands.h: the commands of a chat: lines that begin with a slash.
#pragma once

#include <string>

#include "cli/chat/chat_session.h"
#include "foretoken/result.h"

namespace foretoken::cli {

// "/..." but not "//...": a prompt that begins with a slash doubles it.
bool IsChatCommand(const std::string& line);

// Runs a command and returns what to print: the present value. Errors: kInvalidArgument (an unknown
// command, a wrong value; the session is then unchanged), those of the engines that a command
// opens.
[[nodiscard]] Result<std::string> ExecuteChatCommand(ChatSession& session, const std::string& line);

}  // namespace foretoken::cli
