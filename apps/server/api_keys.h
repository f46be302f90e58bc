// SPDX-License-Identifier: Apache-2.0
// server/api_keys.h: whether a request has a key that opens.
#pragma once

#include <string>
#include <vector>

#include "server/http.h"

namespace foretoken::server {

// "Authorization: Bearer KEY" (the scheme in any case) or "X-Api-Key: KEY". Without keys all may.
bool HasKey(const HttpRequest& request, const std::vector<std::string>& keys);

}  // namespace foretoken::server
