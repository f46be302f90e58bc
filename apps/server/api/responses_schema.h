// SPDX-License-Identifier: Apache-2.0
// server/api/responses_schema.h: reads the bodies of OpenAI's responses, as calls of chats. Whatever
// both have is checked by the reader of chats, whose names of fields errors may have.
//
// Pure functions of their arguments; any bytes may come in.
#pragma once

#include <string>
#include <string_view>

#include "server/api/openai_schema.h"

namespace foretoken::server {

// echo: the members of a JSON object that replies repeat of the request, on one line.
[[nodiscard]] Parsed<GenerationCall> ParseResponsesCall(std::string_view body,
                                                        const ModelLimits& limits,
                                                        std::string& echo);

}  // namespace foretoken::server
