// SPDX-License-Identifier: Apache-2.0
// server/api/anthropic_writer.h: replies in the form of Anthropic's Messages.
#pragma once

#include <memory>

#include "server/api/reply_writer.h"

namespace foretoken::server {

std::unique_ptr<ReplyWriter> AnthropicWriter();

// {"type": "error", "error": {"type", "message"}}
std::string AnthropicErrorJson(const ApiError& error);

}  // namespace foretoken::server
