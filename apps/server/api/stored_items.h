// SPDX-License-Identifier: Apache-2.0
// server/api/stored_items.h: items of a request in the form in which they are stored and listed: with
// an id, a type and a status, and the content of messages as a list of parts.
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// The id that the client gave it; "" if there is none, or it is no id.
std::string OwnIdOf(const Json& item);
// How ids of this type begin.
std::string_view IdPrefixOf(std::string_view type);
// REQUIRES: it is an item that InputItems has read without an error.
std::string StoredItemJson(const Json& item, std::string_view type, const std::string& id);

}  // namespace foretoken::server
