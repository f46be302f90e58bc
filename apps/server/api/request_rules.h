// SPDX-License-Identifier: Apache-2.0
// server/api/request_rules.h: what the operator decides about the bodies of requests. Flags fill it,
// and those who read bodies have it whole, so an option that bodies are checked against is named here, beside
// its flag, and where a body is read.
#pragma once

namespace foretoken::server {

struct RequestRules {
  bool any_model = false;  // a request may name any model
};

}  // namespace foretoken::server
