// SPDX-License-Identifier: Apache-2.0
// server/request_reader.h: from the bytes of a connection to requests.
//
// Boost.Beast parses; this adds limits and refuses what two readers (a proxy in front, and this
// server) could take differently: two lengths, a length beside chunks, an unknown encoding, folded
// lines, two hosts. request_reader.cpp alone knows Beast's parser.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "server/http.h"

namespace foretoken::server {

class RequestReader {
 public:
  struct Limits {
    std::size_t header_bytes = 64 << 10;
    std::size_t n_fields = 256;  // of a header
    std::size_t body_bytes = 8 << 20;
  };
  enum class State {
    kEmpty,  // nothing of a request has come
    kHead,   // its header has not ended
    kBody,   // its body has not ended
    kWhole,
    kRefused
  };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Uses up the first bytes of `input` and returns how many. It stops behind the header and behind
  // the request. The rest is to be given again, with what comes after it. REQUIRES: neither whole
  // nor refused.
  std::size_t Read(std::string_view input);
  State state() const { return state_; }
  // The status, where it is refused: 400, 413, 431.
  int refusal() const { return refusal_; }
  // As far as it has come; from kBody on all but the body.
  HttpRequest& request();
  // What its header takes in memory.
  std::size_t head_bytes() const;
  // The client can use the connection for another request. REQUIRES: the header is there.
  bool keeps_connection() const;
  // The client waits for "100 Continue" before it sends the body. REQUIRES: the header is there.
  bool expects_continue() const;
  // For the next request.
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
