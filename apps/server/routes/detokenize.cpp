// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "server/api/plain_replies.h"
#include "server/router.h"
#include "server/routes/long_reply.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMaxTextBytes = 8 << 20;

HttpResponse Detokenize(Service& service, const HttpRequest& request, LogLine& line) {
  const auto call = ParseDetokenizeCall(request.body, service.limits);
  if (!call) return ErrorResponse(call.error());
  // Tokens may be long: a short list of them can stand for more than an answer may have.
  std::size_t bytes = 0;
  for (const std::int32_t token : call->tokens)
    if ((bytes += Piece(service.engine, token, call->special).size()) > kMaxTextBytes)
      return ErrorResponse(
          BadField("tokens", fmt::format("their text has more than {} MiB; send fewer at a time",
                                         kMaxTextBytes >> 20)));
  std::string text = service.engine.Detokenize(call->tokens, call->special);
  const std::size_t n_bytes = text.capacity();
  return LongReply(service, request, line, NamedText("content", std::move(text)), n_bytes);
}

}  // namespace

extern const Route kDetokenizeRoute = {
    .method = "POST",
    .path = "/detokenize",
    .about = "`tokens`, `special` -> `content`; at most 8 MiB of text",
    .handle = Detokenize,
    .reads =
        [](const ModelLimits& limits) { return MissingField(ParseDetokenizeCall("{}", limits)); },
    .reply = "TextOfTokens"};

}  // namespace foretoken::server
