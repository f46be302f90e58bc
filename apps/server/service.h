// SPDX-License-Identifier: Apache-2.0
// server/service.h: what the routes work with. There is one for the server's life; any thread may
// use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "foretoken/async_engine.h"
#include "server/api/idle_fields.h"
#include "server/api/openai_schema.h"
#include "server/metrics.h"
#include "server/next_turn.h"
#include "server/overload.h"
#include "server/request_log.h"
#include "server/response_store.h"
#include "server/routes/tool_calls.h"
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
  ResponseStore& responses;

  const ChatOptions& chat_format;  // how conversations are written
  const ModelCalls& model_calls;
  NextTurns& next_turns;
  ToldFields& told;
  const std::string& slot_folder;   // EngineOptions::slot_folder
  std::atomic<bool>& slot_in_work;  // one slot at a time is saved, restored or erased
};

}  // namespace foretoken::server
