// SPDX-License-Identifier: Apache-2.0
// server/routes/long_reply.h: answers that may be much larger than their requests.
#pragma once

#include "server/http.h"
#include "server/long_text.h"
#include "server/service.h"

namespace foretoken::server {

// `text`, JSON, as its client takes it. It counts and logs itself. What it is made of: so many
// bytes.
HttpResponse LongReply(Service& service, const HttpRequest& request, const LogLine& line,
                       LongText text, std::size_t bytes);

}  // namespace foretoken::server
