// SPDX-License-Identifier: Apache-2.0
#include "server/page/page.h"

#include <string>

#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse Page(Service&, const HttpRequest& request, LogLine&) {
  // No other page may show it in a frame, where its clicks would be another's to steal.
  return {.content_type = "text/html; charset=utf-8",
          .body = std::string(PageOf(request.path)),
          .headers = {{"X-Frame-Options", "DENY"},
                      {"Content-Security-Policy", "frame-ancestors 'none'"}}};
}

}  // namespace

extern const Route kPageRoute = {.method = "GET",
                                 .path = "/",
                                 .about = "the page",
                                 .open = true,
                                 .handle = Page,
                                 .reply_type = "text/html"};
extern const Route kIndexRoute = {.method = "GET",
                                  .path = "/index.html",
                                  .about = "the page, too",
                                  .open = true,
                                  .handle = Page,
                                  .reply_type = "text/html"};

}  // namespace foretoken::server
