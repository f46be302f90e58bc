// SPDX-License-Identifier: Apache-2.0
// server/api/responses_schema.h: reads the bodies of OpenAI's responses, as calls of chats. Whatever
// both have is checked by the reader of chats, whose names of fields errors may have.
//
// Pure functions of their arguments; any bytes may come in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/openai_schema.h"
#include "server/api/stored_response.h"

namespace foretoken::server {

// What a request says beside its chat.
struct ResponsesRequest {
  std::string echo;      // the members of a JSON object that replies repeat, on one line
  std::string previous;  // the response that it continues, or ""
  bool store = true;
  std::vector<StoredItem> input;  // its own items, if it is to be stored
};

[[nodiscard]] Parsed<GenerationCall> ParseResponsesCall(std::string_view body,
                                                        const ModelLimits& limits,
                                                        EarlierItems& earlier,
                                                        ResponsesRequest& request);

}  // namespace foretoken::server
