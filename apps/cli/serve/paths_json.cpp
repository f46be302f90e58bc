// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/paths_json.h"

#include <limits>

#include "base/json/json.h"
#include "server/routes/openapi.h"
#include "server/routes/routes.h"

namespace foretoken::cli {

Json EndpointsJson() {
  Json list = Json::array();
  for (const server::Route* const row : server::Routes()) {
    list.push_back({{"method", row->method},
                    {"path", row->path},
                    {"about", row->about},
                    {"needs_key", !row->open}});
    if (row->refuses != 0) list.back()["refuses"] = row->refuses;
  }
  return list;
}

std::string OpenApiOfAnyModel() {
  server::ModelLimits limits;
  limits.embedding_size = std::numeric_limits<int>::max();
  limits.scores_pairs = true;
  return server::OpenApiText(limits);
}

}  // namespace foretoken::cli
