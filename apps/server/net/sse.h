// SPDX-License-Identifier: Apache-2.0
// server/net/sse.h: server-sent events.
#pragma once

#include <string>
#include <string_view>

namespace foretoken::server {

inline constexpr const char* kEventStream = "text/event-stream";

// One event. REQUIRES: data has no line breaks (JSON text on one line has none).
inline std::string EventText(std::string_view data) {
  std::string text = "data: ";
  text += data;
  text += "\n\n";
  return text;
}

inline std::string LastEvent() {
  return EventText("[DONE]");
}

}  // namespace foretoken::server
