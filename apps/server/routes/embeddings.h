// SPDX-License-Identifier: Apache-2.0
// server/routes/embeddings.h: answers a call for embeddings, in the form that it has.
#pragma once

#include "server/routes/embedding_reply.h"

namespace foretoken::server {

// refusal: the body of an error.
HttpResponse EmbedCall(Service& service, const HttpRequest& request, EmbeddingCall call,
                       std::string (*refusal)(const ApiError& error), LogLine& line);

}  // namespace foretoken::server
