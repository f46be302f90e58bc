// SPDX-License-Identifier: Apache-2.0
#include "server/net/reply_head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/beast/http/status.hpp>

#include <algorithm>

namespace foretoken::server {
namespace {

std::string_view Reason(int status) {
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

}  // namespace

std::string HeadText(const HttpResponse& response, const ReplyFraming& framing) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nX-Request-Id: {}\r\n", response.status,
                  Reason(response.status), DateText(std::time(nullptr)), framing.request_id);
  if (framing.keeps_connection)
    text +=
        fmt::format("Connection: keep-alive\r\nKeep-Alive: timeout={}\r\n", framing.idle_timeout_s);
  else
    text += "Connection: close\r\n";
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  if (response.status != 204) {
    text += "Content-Type: " + response.content_type + "\r\n";
    if (framing.n_bytes)
      text += fmt::format("Content-Length: {}\r\n", *framing.n_bytes);
    else if (framing.http11)
      text += "Transfer-Encoding: chunked\r\n";
  }
  return text + "\r\n";
}

std::string DateText(std::time_t time) {
  // Its own names of days and months, because those of the locale may differ.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm t = fmt::gmtime(time);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[t.tm_wday], t.tm_mday,
                     kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

bool IsSaneId(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  });
}

}  // namespace foretoken::server
