// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Version(Service&, const HttpRequest&, LogLine&) {
  return {.body = VersionJson()};
}

}  // namespace

const Route kVersionRoute = {"GET", "/version", false, Version};

}  // namespace foretoken::server
