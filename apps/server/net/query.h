// SPDX-License-Identifier: Apache-2.0
// server/net/query.h: the fields behind the question mark of a request's target.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foretoken::server {

// The value of the first field with this name, decoded ("%41" and "+"); nothing if there is none.
// query: as it was sent, without the question mark. Any bytes may come in.
std::optional<std::string> QueryField(std::string_view query, std::string_view name);

}  // namespace foretoken::server
