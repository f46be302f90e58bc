// SPDX-License-Identifier: Apache-2.0
// server/http.h: HTTP/1.1 as the routes see it. http.cpp alone knows the library behind it.
//
// A request has a thread while it is answered, not while it arrives nor between requests (gate.h).
// What a client may make the server hold or wait for is bounded: the bytes of a header and of a
// body, the time that a request takes to arrive, the time between requests, the pace at which an
// answer leaves.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::server {

struct HttpRequest {
  std::string method, path, body, remote_address;
  std::string authorization;  // the header; "" where none was sent
  // Whether the client has hung up. One that only ended its sending (shutdown, as after the last
  // request) has not. For the thread that serves the request, until the answer has left.
  std::function<bool()> client_gone;
};

// A body that comes in parts. Destroyed when the last part was taken, or when no more can be sent.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Waits for the next part; false: there is none (an aborted stream included).
  virtual bool Next(std::string& part) = 0;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::shared_ptr<BodyStream> stream;  // in place of the body, chunked; or null
  std::vector<std::pair<std::string, std::string>> headers;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: one that is free
  std::int64_t max_body_bytes = 8 << 20;
  int max_answers = 64;  // under way at a time
  int max_connections = 1024;
  int idle_timeout_s = 30;  // a connection without a request
  int read_timeout_s = 30;  // from a request's first byte to its last
  // A client that takes nothing for so long, or in the long run less than 1 KiB a second.
  int write_timeout_s = 30;
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // The answer to what is no request: 400 (malformed), 408 (it did not arrive in time), 413 (body
  // too large), 414, 415, 431 (header too large), 500, 503 (too many are arriving).
  using Refusal = std::function<HttpResponse(int status)>;
  // An answer was broken off: its client did not take it in time.
  using Cut = std::function<void(const std::string& remote_address)>;

  // The functions are called from several threads at a time and must not throw.
  HttpServer(const HttpOptions& options, Handler handle, Refusal refuse, Cut cut);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port. Errors: kIo: the address is taken, or not this machine's.
  [[nodiscard]] Result<int> Bind();
  // Serves until Stop was called and the answers under way have left. REQUIRES: bound.
  void Listen();
  // Takes no more connections, and lets the answers under way leave within `grace`. Any thread.
  void Stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::server
