// SPDX-License-Identifier: Apache-2.0
// server/api/anthropic_schema.h: reads the bodies of Anthropic's Messages, by translating them into
// those of chats.
#pragma once

#include <string_view>

#include "server/api/openai_schema.h"

namespace foretoken::server {

// counts: a body of /v1/messages/count_tokens, which needs no max_tokens.
[[nodiscard]] Parsed<GenerationCall> ParseMessagesCall(std::string_view body,
                                                       const ModelLimits& limits, bool counts);

}  // namespace foretoken::server
