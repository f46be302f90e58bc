// SPDX-License-Identifier: Apache-2.0
// server/server.h: an engine behind HTTP, with OpenAI's API (docs/server.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/engine.h"
#include "server/api/request_rules.h"
#include "server/input_end.h"
#include "server/net/http.h"

namespace foretoken::server {

// Limits for one client. A limit that is not set is half of what all clients may have together, and
// does not apply to addresses of this machine; 0 is no limit.
struct ClientLimits {
  std::optional<int> connections_per_address, requests_per_address;
  std::optional<int> requests_per_key;  // nothing, and there is one key: no limit
  // In lower case. The last address in this header field, which a proxy wrote, is the client's; "":
  // the connection's.
  std::string client_address_header;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                         // 0: one that is free
  std::vector<std::string> api_keys;       // accepted keys; empty: no key is needed
  std::vector<std::string> cors_origins;   // sites whose pages may use the server; "*": all
  std::vector<std::string> allowed_hosts;  // names of the server besides localhost
  // What requests leave behind serves all clients; else those with the same key, or the same address
  // where there are no keys.
  bool share_among_clients = false;
  int max_queue = 64;  // choices that may wait
  std::int64_t max_body_bytes = kUsualBodyBytes;
  std::int64_t max_memory = 0;  // bytes of the process; 0: nine tenths of what it may have
  ClientLimits limits;
  int request_timeout_s = 600;  // from arrival to the last token; 0: none
  // The model's names in requests; replies use the first one. The file's name, with .gguf and
  // without, works too; if no name is given, the one without is the first.
  std::vector<std::string> model_names;
  RequestRules request_rules;
  ChatOptions chat_format;  // how messages are written; requests add tools and variables
  bool log_requests = true;
  bool log_prompts = false;
};

enum class ServeOutcome { kDrained, kStopped };

// The server listens on a network, and whoever reaches it there may use it.
bool IsOpenToAll(const ServerOptions& options);

// Serves until SIGTERM, SIGINT, SIGHUP or the end of the standard input, then answers what it has accepted and refuses the rest
// (kDrained); a second signal cancels what runs (kStopped). Handles these signals while it runs,
// except a SIGHUP that was ignored (nohup). `engine_options` are those of the engine. on_listening
// gets the port. input: where it is null, the standard input does not matter. Errors: kIo: the address cannot be used, or the trace is not whole
// (Engine::RecordStatus); kRankLost; kTooLarge: the model leaves too little memory; kNoMemory.
[[nodiscard]] Result<ServeOutcome> Serve(std::unique_ptr<Engine> engine,
                                         const EngineOptions& engine_options,
                                         const ServerOptions& options, InputEnd* input,
                                         const std::function<void(int port)>& on_listening);

}  // namespace foretoken::server
