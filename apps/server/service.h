// SPDX-License-Identifier: Apache-2.0
// server/service.h: what the routes work with. There is one for the server's life; any thread may
// use it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "foretoken/async_engine.h"
#include "server/api/openai_schema.h"
#include "server/metrics.h"
#include "server/net/http.h"
#include "server/overload.h"
#include "server/request_log.h"
#include "server/server.h"
#include "server/totals.h"

namespace foretoken::server {

struct Service {
  AsyncEngine& requests;  // runs them
  const Engine& engine;   // the same one's, for its members that any thread may call
  const ServerOptions& options;
  const ModelLimits limits;
  const bool chats;            // there is a chat template for /v1/chat/completions
  const std::int64_t started;  // seconds since 1970
  Metrics& metrics;
  Totals& totals;
  RequestLog& log;
  Overload& overload;

  // How the conversation of a request is written. It ends when the client has gone; `charges` must
  // outlive it.
  ChatOptions ChatFormat(const Charges& charges) const {
    ChatOptions format = options.chat_format;
    format.max_memory_bytes =
        std::min(format.max_memory_bytes, static_cast<std::size_t>(overload.plan().conversation));
    format.cancelled = [&charges] { return charges.client_gone.load(std::memory_order_relaxed); };
    return format;
  }
};

}  // namespace foretoken::server
