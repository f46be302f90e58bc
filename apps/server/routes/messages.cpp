// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "server/api/anthropic_schema.h"
#include "server/api/anthropic_writer.h"
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Message(Service& service, const HttpRequest& request, LogLine& line) {
  return Generate(service, request, ParseMessagesCall(request.body, service.limits, false),
                  AnthropicWriter(), line);
}

HttpResponse CountTokens(Service& service, const HttpRequest& request, LogLine& line) {
  auto count = CountPrompt(service, ParseMessagesCall(request.body, service.limits, true));
  if (count) return {.body = fmt::format("{{\"input_tokens\":{}}}", *count)};
  const ApiError error = InOwnNames(count.error(), AnthropicWriter()->own_names());
  line.Add("error", NameOf(error));
  if (!error.param.empty()) line.Add("param", error.param);
  HttpResponse response = ErrorResponse(error);
  response.body = AnthropicErrorJson(error);
  return response;
}

}  // namespace

extern const Route kMessagesRoute = {
    .method = "POST",
    .path = "/v1/messages",
    .about = "Anthropic's Messages, below",
    .handle = Message,
    .refusal = AnthropicErrorJson,
    .reads =
        [](const ModelLimits& limits) {
          return MissingField(ParseMessagesCall("{}", limits, false));
        },
    .reply = "AnthropicReply",
    .event = "AnthropicEvent"};
extern const Route kCountTokensRoute = {
    .method = "POST",
    .path = "/v1/messages/count_tokens",
    .about = "Anthropic's: the body of a message -> `input_tokens`",
    .handle = CountTokens,
    .refusal = AnthropicErrorJson,
    .reads =
        [](const ModelLimits& limits) {
          return MissingField(ParseMessagesCall("{}", limits, true));
        },
    .reply = "TokenCount"};

}  // namespace foretoken::server
