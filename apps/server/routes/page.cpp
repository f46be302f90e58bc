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

extern const Route kPageRoute = {
    .method = "GET", .path = "/", .about = "the page", .open = true, .handle = Page};
extern const Route kIndexRoute = {
    .method = "GET", .path = "/index.html", .about = "the page, too", .open = true, .handle = Page};

}  // namespace foretoken::server
