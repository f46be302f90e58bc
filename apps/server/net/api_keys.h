// SPDX-License-Identifier: Apache-2.0
// server/net/api_keys.h: finds the server's key that a request has.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/net/http.h"

namespace foretoken::server {

// Its index in `keys`, from "Authorization: Bearer KEY" (the scheme in any case) or "X-Api-Key:
// KEY"; nothing if the request has none of them.
std::optional<std::size_t> KeyOf(const HttpRequest& request, const std::vector<std::string>& keys);

}  // namespace foretoken::server
