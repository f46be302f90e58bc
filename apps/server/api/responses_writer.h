// SPDX-License-Identifier: Apache-2.0
// server/api/responses_writer.h: replies in the form of OpenAI's responses.
#pragma once

#include <memory>
#include <string>

#include "server/api/reply_writer.h"

namespace foretoken::server {

// echo: as ParseResponsesCall has it. For chats with one choice. Streams are named events with
// numbers; those that end something have the whole of it.
std::unique_ptr<ReplyWriter> ResponsesWriter(std::string echo);

}  // namespace foretoken::server
