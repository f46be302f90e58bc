// SPDX-License-Identifier: Apache-2.0
// server/net/reply_head.h: the status line and the header of an answer, as bytes.
#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>

#include "server/net/http.h"

namespace foretoken::server {

struct ReplyFraming {
  bool http11 = true;                  // the client speaks HTTP/1.1
  bool keeps_connection = true;        // after the answer
  int idle_timeout_s = 30;             // how long the connection is kept
  std::optional<std::size_t> n_bytes;  // of the body; nothing: chunks, or (HTTP/1.0) the close
  std::string request_id;
};

std::string HeadText(const HttpResponse& response, const ReplyFraming& framing);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string DateText(std::time_t time);

// A request id that a client may choose: 1 to 128 letters, digits and "._:-".
bool IsSaneId(std::string_view id);

}  // namespace foretoken::server
