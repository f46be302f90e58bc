// SPDX-License-Identifier: Apache-2.0
// server/net/client_address.h: which client a request comes from, for the limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/net/http.h"

namespace foretoken::server {

// One client: an IPv4 address, also if written as an IPv6 one; or the first 64 bits of an IPv6
// address, because the owner of one such address has them all.
std::string ClientOf(const std::string& address);

// What requests of one client have in common: its key's hash, or its address where the server has no keys.
// A line of text, different for each client, and the same in a later server, whose list of keys may be
// another: files that outlive a server (--cache-file) tell clients by it.
std::string ClientNameOf(const HttpRequest& request, const std::vector<std::string>& keys);

// "192.168.0.7", "::1" or "[::1]", and no name.
bool IsAddress(std::string_view text);

// Where a server that listens there is reached from this machine alone.
bool IsThisMachineOnly(std::string_view host);

// An address of this machine (127.0.0.0/8, ::1).
bool IsThisMachine(const std::string& address);

// The last address in the last header field of that name, which the proxy next to this server
// wrote. "" if there is none.
std::string ForwardedAddress(const HttpRequest& request, std::string_view field);

}  // namespace foretoken::server
