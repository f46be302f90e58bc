// SPDX-License-Identifier: Apache-2.0
// server/routes/generation.h: what both generation endpoints do: prompts to tokens, jobs to the
// engine, events to an answer.
#pragma once

#include "server/api/openai_schema.h"
#include "server/net/http.h"
#include "server/service.h"

namespace foretoken::server {

HttpResponse Generate(Service& service, const HttpRequest& request, GenerationCall call,
                      LogLine& line);
// The error as a response; also written into the log line.
HttpResponse RefuseGeneration(const ApiError& error, LogLine& line);

}  // namespace foretoken::server
