// SPDX-License-Identifier: Apache-2.0
// server/api/plain_replies.h: replies that no model writes, as JSON on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/async_engine.h"
#include "server/api/api_error.h"
#include "server/api/long_text.h"
#include "server/api/reply_frame.h"
#include "server/overload.h"

namespace foretoken::server {

std::string ErrorJson(const ApiError& error);

// piece: null if pieces were not asked for.
LongText TokensText(std::vector<std::int32_t> tokens, PieceOf piece);
// {"name": text}
LongText NamedText(std::string_view name, std::string text);
// `files`: Engine::FileStatus.
std::string HealthJson(bool draining, AsyncLoad load, const Overload& overload,
                       const Status& files);
std::string VersionJson();

}  // namespace foretoken::server
