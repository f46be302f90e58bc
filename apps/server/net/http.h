// SPDX-License-Identifier: Apache-2.0
// server/net/http.h: HTTP/1.1 as the routes see it.
//
// One thread holds all connections (connection.h). A client that idles, sends slowly, waits for its
// answer or reads a stream costs bytes but no thread. What a client can make the server hold or
// wait for is bounded: the bytes of a header and of a body, the time that a request takes to
// arrive, the time between requests, the pace at which an answer leaves.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "server/net/byte_ledger.h"
#include "server/net/quota.h"

namespace foretoken::server {

class Overload;

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// Names of fields and hosts are compared without regard to the case of their ASCII letters.
inline std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// What a request takes from the server, released when nobody works on it any more.
struct Charges {
  std::shared_ptr<ByteLedger::Account> bytes;
  std::vector<Quota::Share> shares = {};  // of its address, of its key
  ByteHold body = {};                     // while it waits for a worker or is with one
  std::atomic<bool> client_gone = false;  // nobody wants its answer
};

struct Route;  // of the responder

struct HttpRequest {
  std::string method, path, body, remote_address;  // path: decoded, without the query
  std::string query;  // as it was sent, without the question mark; QueryField reads it
  std::string id;     // the client's x-request-id, or a new one; in the log and the answer
  std::string host;   // the name that the client asked for, in lower case, without the port
  HttpFields fields;  // of the header, in order; names in lower case
  bool http11 = true;
  // On a connection that is kept for paths that are answered while all others are taken.
  bool in_reserve = false;
  std::shared_ptr<Charges> charges;  // set with the id
  const Route* route = nullptr;      // that leads here, once Responder::AnswerHead has looked

  // The first field with this name; "" if there is none. REQUIRES: the name is in lower case.
  std::string_view Field(std::string_view name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    return {};
  }
};

class LaterReply;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Replaces the body above, or null. The header fields below go with its head.
  std::shared_ptr<LaterReply> later;
  HttpFields headers;
};

// The part of an answer that is ready.
struct Delivery {
  std::optional<HttpResponse> head;  // with the first delivery that has bytes, or with the last one
  std::string bytes;                 // of the body
  bool more = false;                 // there is more already
  bool ended = false;
};

// An answer that comes later, whole or in parts. If it is destroyed before its end, its client has
// gone.
class LaterReply {
 public:
  virtual ~LaterReply() = default;
  // Any thread may call `ready`, as often as it likes, until this object is destroyed: Take may
  // have something to give. Called once.
  virtual void Watch(std::function<void()> ready) = 0;
  // When Take must be called even if `ready` was not.
  virtual std::chrono::steady_clock::time_point deadline() const = 0;
  // What has become ready since the last call. It runs in the thread of all connections, so it does
  // not wait, and gives at most about 32 KiB. Called when the connection can take more, and when
  // the server stops.
  virtual Delivery Take() = 0;
  // The server has no memory for it: Take gives its end next. False: it cannot do that, and must be
  // destroyed.
  virtual bool Drop() = 0;
};

inline constexpr std::int64_t kUsualBodyBytes = 8 << 20;

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free port
  std::int64_t max_body_bytes = kUsualBodyBytes;
  int max_workers = 2;  // threads for what takes longer than a moment
  int max_connections = 1024;
  // The most connections of one address; 0: no limit.
  int max_connections_per_address = 0;
  bool limits_this_machine = false;  // also for its own addresses
  int idle_timeout_s = 30;           // a connection without a request
  int read_timeout_s = 30;           // from a request's first byte to its last
  // A client that reads nothing for this long, or less than 1 KiB a second in the long run, is cut.
  int write_timeout_s = 30;
};

// Answers requests. The functions must not throw.
class Responder {
 public:
  virtual ~Responder() = default;
  // Called when the header is there, in the thread of all connections, so it must be quick. What it
  // returns is sent at once, without waiting for the body. Nothing: the whole request goes to
  // Answer.
  virtual std::optional<HttpResponse> AnswerHead(HttpRequest& request) = 0;
  // Called in one of the workers.
  virtual HttpResponse Answer(const HttpRequest& request) = 0;
  // The reply to input that is not a request, or cannot be answered: 400 (malformed), 408 (it did
  // not arrive in time), 413 (body too large), 429 (its address has too many connections), 431
  // (header too large), 500, 503 (no memory or no connection is left). Any thread. `request` has
  // what was understood.
  virtual HttpResponse Refuse(const HttpRequest& request, int status) = 0;
  // An answer was cut because its client did not read it in time. Called in the thread of all
  // connections.
  virtual void NoteCut(const HttpRequest& request) = 0;
};

class HttpServer {
 public:
  // All arguments must outlive it.
  HttpServer(const HttpOptions& options, Responder& responder, ByteLedger& bytes,
             Overload& overload);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port. Errors: kIo: the address is taken, or not one of this machine.
  [[nodiscard]] Result<int> Bind();
  // Serves until Stop was called and the running answers have left. REQUIRES: bound.
  void Listen();
  // Accepts no more connections, and lets the running answers leave within `grace`. Any thread.
  void Stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::server
