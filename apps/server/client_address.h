// SPDX-License-Identifier: Apache-2.0
// server/client_address.h: from whom a request comes, as far as limits are concerned.
#pragma once

#include <string>
#include <string_view>

#include "server/http.h"

namespace foretoken::server {

// One client: an IPv4 address, also where it is written as an IPv6 one; of IPv6 the first 64 bits,
// as whoever has one such address has them all.
std::string ClientOf(const std::string& address);

// An address of this machine (127.0.0.0/8, ::1).
bool IsThisMachine(const std::string& address);

// The last address in the last header field of that name: what the proxy next to this server saw.
// "" where there is none.
std::string ForwardedAddress(const HttpRequest& request, std::string_view field);

}  // namespace foretoken::server
