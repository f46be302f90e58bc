// SPDX-License-Identifier: Apache-2.0
// server/routes/generation.h: what all generation endpoints do: prompts to tokens, jobs to the
// engine, events to an answer.
#pragma once

#include <memory>
#include <string>

#include "server/api/openai_schema.h"
#include "server/api/reply_writer.h"
#include "server/net/http.h"
#include "server/service.h"

namespace foretoken::server {

// call: what the endpoint has read of the body. The writer gives all replies their form, errors too.
HttpResponse Generate(Service& service, const HttpRequest& request, Parsed<GenerationCall> call,
                      std::unique_ptr<ReplyWriter> writer, LogLine& line);
// The salt of a client's request: its texts serve those of the same client and the same cache_salt.
std::string SaltOf(const Service& service, const HttpRequest& request, const std::string& salt);
// The tokens of a chat's prompt.
[[nodiscard]] Parsed<std::int64_t> CountPrompt(const Service& service, Parsed<GenerationCall> call);

}  // namespace foretoken::server
