// SPDX-License-Identifier: Apache-2.0
// server/net/request_reader.h: turns the bytes of a connection into requests.
//
// Boost.Beast parses. This class adds limits and refuses what two readers (a proxy in front, and
// this server) could read differently: two lengths, a length beside chunks, an unknown encoding,
// folded lines, two hosts. Only request_reader.cpp includes Beast's parser.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "server/net/http.h"

namespace foretoken::server {

class RequestReader {
 public:
  struct Limits {
    std::size_t header_bytes = 64 << 10;
    std::size_t n_fields = 256;  // of a header
    std::size_t body_bytes = kUsualBodyBytes;
  };
  enum class State {
    kEmpty,  // no byte of a request has arrived
    kHead,   // its header is incomplete
    kBody,   // its body is incomplete
    kWhole,
    kRefused
  };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Consumes the first bytes of `input` and returns how many. It stops behind the header and behind
  // the request. Give the rest again, together with what follows. REQUIRES: the request is neither
  // complete nor refused.
  std::size_t Read(std::string_view input);
  State state() const { return state_; }
  // The status if it is refused: 400, 413, 431.
  int refusal() const { return refusal_; }
  // The request so far; from kBody on everything but the body.
  HttpRequest& request();
  // The memory of its header.
  std::size_t head_bytes() const;
  // Whether the client can use the connection for another request. REQUIRES: the header is there.
  bool keeps_connection() const;
  // Whether the client waits for "100 Continue" before it sends the body. REQUIRES: the header is
  // there.
  bool expects_continue() const;
  // Prepares for the next request.
  void Restart();

 private:
  class Parser;
  std::size_t ReadHead(std::string_view input);
  std::size_t ReadBody(std::string_view input);
  void CheckChunkLine(std::string_view rest);
  void Refuse(int status);

  const Limits limits_;
  State state_ = State::kEmpty;
  int refusal_ = 0;
  std::size_t header_bytes_ = 0, body_wire_bytes_ = 0;
  std::unique_ptr<Parser> parser_;  // null: kEmpty
  HttpRequest nothing_;
};

}  // namespace foretoken::server
