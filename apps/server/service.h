// SPDX-License-Identifier: Apache-2.0
// server/service.h: what the routes work with. There is one for the server's life; any thread may
// use it.
#pragma once

#include <atomic>
#include <cstdint>

#include "foretoken/engine.h"
#include "server/api/openai_schema.h"
#include "server/engine_thread.h"
#include "server/job_queue.h"
#include "server/metrics.h"
#include "server/overload.h"
#include "server/request_log.h"
#include "server/server.h"
#include "server/totals.h"

namespace foretoken::server {

struct Service {
  const Engine& engine;  // its const members only
  const ServerOptions& options;
  const ModelLimits limits;
  const int parallel;
  const bool chats;            // there is a chat template for /v1/chat/completions
  const std::int64_t started;  // seconds since 1970
  JobQueue& queue;
  Metrics& metrics;
  Totals& totals;
  const EngineThread& engine_thread;
  RequestLog& log;
  Overload& overload;
  const std::atomic<bool>& stopping;  // nothing more is answered
};

}  // namespace foretoken::server
