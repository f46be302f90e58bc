// SPDX-License-Identifier: Apache-2.0
#include "server/page/page.h"

#include <string>

#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Page(Service&, const HttpRequest& request, LogLine&) {
  return {.content_type = "text/html; charset=utf-8", .body = std::string(PageOf(request.path))};
}

}  // namespace

const Route kPageRoute = {"GET", "/", true, Page};
const Route kIndexRoute = {"GET", "/index.html", true, Page};

}  // namespace foretoken::server
