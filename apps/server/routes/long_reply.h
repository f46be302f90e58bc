// SPDX-License-Identifier: Apache-2.0
// server/routes/long_reply.h: answers that may be much larger than their requests.
#pragma once

#include "server/api/long_text.h"
#include "server/net/http.h"
#include "server/service.h"

namespace foretoken::server {

// Sends `text`, which is JSON, as its client reads it. It counts and logs itself. The last argument
// is the size of its source in bytes.
HttpResponse LongReply(Service& service, const HttpRequest& request, const LogLine& line,
                       LongText text, std::size_t bytes);

}  // namespace foretoken::server
