// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "server/api/responses_schema.h"
#include "server/api/responses_writer.h"
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse CreateResponse(Service& service, const HttpRequest& request, LogLine& line) {
  std::string echo;
  Parsed<GenerationCall> call = ParseResponsesCall(request.body, service.limits, echo);
  return Generate(service, request, std::move(call), ResponsesWriter(std::move(echo)), line);
}

}  // namespace

extern const Route kResponsesRoute = {.method = "POST",
                                      .path = "/v1/responses",
                                      .about = "OpenAI's responses, below",
                                      .handle = CreateResponse,
                                      .reads = [](const ModelLimits& limits) {
                                        std::string echo;
                                        return MissingField(ParseResponsesCall("{}", limits, echo));
                                      }};

}  // namespace foretoken::server
