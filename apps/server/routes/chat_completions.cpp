// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse ChatCompletions(Service& service, const HttpRequest& request, LogLine& line) {
  return Generate(service, request, ParseChatCall(request.body, service.limits), OpenAiWriter(),
                  line);
}

}  // namespace

extern const Route kChatCompletionsRoute = {
    .method = "POST",
    .path = "/v1/chat/completions",
    .about = "OpenAI's chats, below",
    .handle = ChatCompletions,
    .reads = [](const ModelLimits& limits) { return MissingField(ParseChatCall("{}", limits)); },
    .reply = "ChatCompletion",
    .event = "ChatEvent"};

}  // namespace foretoken::server
