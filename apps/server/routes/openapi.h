// SPDX-License-Identifier: Apache-2.0
// server/routes/openapi.h: a document of all paths and of the bodies of requests.
#pragma once

#include <string>

#include "server/api/openai_schema.h"

namespace foretoken::server {

// OpenAPI 3.1, as JSON on one line. A limit that is 0 is not known, and the document has no bound from it.
std::string OpenApiText(const ModelLimits& limits);

}  // namespace foretoken::server
