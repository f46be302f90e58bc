// SPDX-License-Identifier: Apache-2.0
// server/api/responses_writer.h: replies in the form of OpenAI's responses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/api/reply_writer.h"
#include "server/api/stored_response.h"

namespace foretoken::server {

struct ResponsesReply {
  std::string echo, previous;  // as ResponsesRequest has them
  // Keeps a response, to which it adds the input, before its client has the end of it. False: it is too
  // large. Null: the client wants nothing kept.
  std::function<bool(StoredResponse)> keep;
};

// For chats with one choice. Streams are named events with numbers; those that end something have the
// whole of it.
std::unique_ptr<ReplyWriter> ResponsesWriter(ResponsesReply reply);

}  // namespace foretoken::server
