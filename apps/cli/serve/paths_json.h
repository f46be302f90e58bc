// SPDX-License-Identifier: Apache-2.0
// cli/serve/paths_json.h: what the server answers, for documents that are made from the program.
#pragma once

#include <string>

#include "base/json/json.h"

namespace foretoken::cli {

Json EndpointsJson();
// The OpenAPI document as it is without a model.
std::string OpenApiOfAnyModel();

}  // namespace foretoken::cli
