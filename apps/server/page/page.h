// SPDX-License-Identifier: Apache-2.0
// apps/server/page/page.h: the page at "/", compiled in.
#pragma once

#include <string_view>

namespace foretoken::server {

// One HTML document with its style and scripts inside, for "/" and "/index.html", to be sent as
// text/html; charset=utf-8. It loads nothing else and only calls this server's /v1/... . Empty for
// any other path.
std::string_view PageOf(std::string_view path);

}  // namespace foretoken::server
