// SPDX-License-Identifier: Apache-2.0
// server/framing.h: where an HTTP/1 request ends in the bytes of a connection.
//
// It reads no more of a request than that takes: its first line and what measures its body. A
// request whose length two readers could take differently (a proxy in front, and this server) is
// malformed.
#pragma once

#include <cstddef>
#include <string_view>

namespace foretoken::server {

class Framing {
 public:
  struct Limits {
    std::size_t header_bytes = 64 << 10;
    std::size_t body_bytes = 8 << 20;
  };
  enum class State { kIncomplete, kWhole, kMalformed, kHeaderTooLarge, kBodyTooLarge };

  explicit Framing(const Limits& limits) : limits_(limits) {}

  // `input`: all that came since the request's first byte. Looks but once at each byte, however
  // many calls they come in. REQUIRES: the calls before, since Restart, returned kIncomplete.
  State See(std::string_view input);
  // The request's bytes. REQUIRES: whole.
  std::size_t size() const { return body_begin_ + body_size_; }
  // The client waits for "100 Continue" before it sends its body.
  bool expects_continue() const { return expects_continue_; }
  void Restart() { *this = Framing(limits_); }

 private:
  State SeeHeader(std::string_view input);
  bool Measure(std::string_view header);
  bool MeasureField(std::string_view name, std::string_view value);
  State SeeBody(std::string_view input);
  State SeeChunks(std::string_view input);

  Limits limits_;
  bool line_seen_ = false;      // the request's first line
  std::size_t scanned_ = 0;     // bytes of the header
  std::size_t body_begin_ = 0;  // 0: the header has not ended
  bool has_length_ = false, chunked_ = false, expects_continue_ = false;
  std::size_t body_size_ = 0;    // as sent: with the frames of chunks
  std::size_t chunk_begin_ = 0;  // of the next chunk, or of the next trailer
  std::size_t chunk_bytes_ = 0;  // of the chunks before it
  bool in_trailers_ = false;
};

}  // namespace foretoken::server
