// SPDX-License-Identifier: Apache-2.0
// server/request_log.h: one line on standard error for each request: name=value pairs, values with
// spaces in quotes. No text of a prompt or an answer, unless the server was asked for prompts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken::server {

class LogLine {
 public:
  LogLine& Add(std::string_view name, std::string_view value);
  LogLine& Add(std::string_view name, std::int64_t value);
  LogLine& AddMs(std::string_view name, double ms);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Writes whole lines, each with the time before it; any thread may use it.
class RequestLog {
 public:
  explicit RequestLog(bool shown) : shown_(shown) {}
  void Write(const LogLine& line) const;

 private:
  bool shown_;
};

}  // namespace foretoken::server
