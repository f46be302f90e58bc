// SPDX-License-Identifier: Apache-2.0
#include "server/api/plain_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Version(Service&, const HttpRequest&, LogLine&) {
  return {.body = VersionJson()};
}

}  // namespace

extern const Route kVersionRoute = {.method = "GET",
                                    .path = "/version",
                                    .about = "the version",
                                    .handle = Version,
                                    .reply = "Version"};

}  // namespace foretoken::server
