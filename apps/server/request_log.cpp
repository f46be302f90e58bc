// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/json/json.h"
#include "settings/escaped_text.h"

namespace foretoken::server {
namespace {

bool Plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:,+@").find(c) != std::string_view::npos;
}

// As a JSON string: no control characters, and U+FFFD for what is not UTF-8. Also escapes what JSON
// allows but a terminal obeys.
std::string Quoted(std::string_view text) {
  return settings::Escaped(Json(text).dump());
}

}  // namespace

LogLine& LogLine::Add(std::string_view name, std::string_view value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), Plain);
  text_ += fmt::format(" {}={}", name, plain ? std::string(value) : Quoted(value));
  return *this;
}

LogLine& LogLine::Add(std::string_view name, std::int64_t value) {
  text_ += fmt::format(" {}={}", name, value);
  return *this;
}

LogLine& LogLine::AddMs(std::string_view name, double ms) {
  text_ += fmt::format(" {}={:.1f}", name, ms);
  return *this;
}

RequestLog::RequestLog(bool shown) {
  if (shown) writer_.emplace(STDERR_FILENO);
}

void RequestLog::Write(const LogLine& line) {
  if (writer_) writer_->Write(line.text());
}

}  // namespace foretoken::server
