// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace foretoken::server {
namespace {

bool Plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:,+@").find(c) != std::string_view::npos;
}

// As JSON writes it: no control characters, and what is not UTF-8 replaced.
std::string Quoted(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
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

void RequestLog::Write(const LogLine& line) const {
  if (!shown_) return;
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::string text =
      fmt::format("time={:%Y-%m-%dT%H:%M:%S}.{:03}Z{}\n",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms, line.text());
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call: lines of threads do not mix
}

}  // namespace foretoken::server
