// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Completions(Service& service, const HttpRequest& request, LogLine& line) {
  return Generate(service, request, ParseCompletionCall(request.body, service.limits),
                  OpenAiWriter(), line);
}

}  // namespace

extern const Route kCompletionsRoute = {
    .method = "POST",
    .path = "/v1/completions",
    .about = "OpenAI's completions, below",
    .handle = Completions,
    .reads =
        [](const ModelLimits& limits) { return MissingField(ParseCompletionCall("{}", limits)); },
    .reply = "Completion",
    .event = "CompletionEvent"};

}  // namespace foretoken::server
