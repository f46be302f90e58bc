// SPDX-License-Identifier: Apache-2.0
#include "server/openai_replies.h"
#include "server/router.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Detokenize(Service& service, const HttpRequest& request, LogLine&) {
  const auto call = ParseDetokenizeCall(request.body, service.limits);
  if (!call) return ErrorResponse(call.error());
  return {.body = ContentJson(service.engine.Detokenize(call->tokens, call->special))};
}

}  // namespace

const Route kDetokenizeRoute = {"POST", "/detokenize", false, Detokenize};

}  // namespace foretoken::server
