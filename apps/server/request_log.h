// SPDX-License-Identifier: Apache-2.0
// server/request_log.h: one line on standard error for each request: name=value pairs, values with
// spaces in quotes. No text of a prompt or an answer, unless the server logs prompts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/net/log_writer.h"

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

// Writes whole lines, each with the time before it. Any thread may use it, and none waits for the
// log's reader.
class RequestLog {
 public:
  explicit RequestLog(bool shown);
  void Write(const LogLine& line);
  // Lines that were dropped because the log's reader did not take them.
  std::int64_t dropped() const { return writer_ ? writer_->dropped() : 0; }

 private:
  std::optional<LogWriter> writer_;  // nothing: there is no log
};

}  // namespace foretoken::server
