// SPDX-License-Identifier: Apache-2.0
#include "server/net/request_reader.h"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <utility>

namespace foretoken::server {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

constexpr std::size_t kMaxChunkLine = 1024;    // a chunk's size and extensions
constexpr std::size_t kLargeBody = 128 << 10;  // of received body
constexpr std::size_t kLastChunk = 5;          // "0\r\n\r\n", which Beast wants to see whole

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes %41 to A. Anything that is not such a code stays, and so does %2F: it is no slash, since a
// proxy that lets some paths through does not take it for one.
std::string Decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool code = text[i] == '%' && i + 2 < text.size();
    const int high = code ? HexDigit(text[i + 1]) : -1, low = code ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high * 16 + low == '/') {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

// The name in "NAME:PORT" or "[ADDRESS]:PORT", in lower case. False: it is neither.
bool ReadHost(std::string_view text, std::string& name) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return false;
  const std::size_t colon = text.find(':', bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (!port.empty() && (!IsNumber(port) || port.size() > 5)) return false;
    text = text.substr(0, colon);
  }
  if (bracket > 0 && bracket + 1 != text.size()) return false;
  const bool clean = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > ' ' && c < 127 &&
           std::string_view("/?#@\\,\"<>").find(static_cast<char>(c)) == std::string_view::npos;
  });
  if (!clean) return false;
  name = Lower(text);
  return true;
}

std::string_view View(string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

class RequestReader::Parser : public http::basic_parser<true> {
 public:
  explicit Parser(const Limits& limits) : limits_(limits) {
    eager(false);
    header_limit(std::numeric_limits<std::uint32_t>::max());  // this reader counts itself
    body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  HttpRequest request;
  bool expects_continue = false;
  std::size_t n_fields = 0;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code& error) override {
    request.method = std::string(View(method));
    request.http11 = version == 11;
    if (!ReadTarget(View(target))) error = http::error::bad_target;
  }

  // "/path?query", "http://host/path?query", or "*" for a method without a path.
  bool ReadTarget(std::string_view target) {
    const std::string scheme = Lower(target.substr(0, 8));
    if (scheme.starts_with("http://") || scheme.starts_with("https://")) {
      const std::size_t begin = target.find("//") + 2;
      const std::size_t end = std::min(target.find_first_of("/?#", begin), target.size());
      if (!ReadHost(target.substr(begin, end - begin), request.host) || request.host.empty())
        return false;
      absolute_ = true;
      target = target.substr(end);
      if (!target.starts_with('/')) {
        request.path = "/";
        ReadQuery(target);
        return true;
      }
    }
    if (!target.starts_with('/') && !(target == "*" && request.method == "OPTIONS")) return false;
    request.path = Decoded(target.substr(0, target.find_first_of("?#")));
    ReadQuery(target);
    return true;
  }

  void ReadQuery(std::string_view target) {
    target = target.substr(0, target.find('#'));
    request.query = target.substr(std::min(target.find('?'), target.size() - 1) + 1);
  }

  void on_field_impl(http::field, string_view name_text, string_view value_text,
                     error_code& error) override {
    if (is_header_done()) return;  // a trailer, which nothing here needs
    std::string name = Lower(View(name_text));
    const std::string_view value = View(value_text);
    if (name == "content-length" && !IsNumber(value)) error = http::error::bad_content_length;
    if (name == "transfer-encoding" && (Lower(value) != "chunked" || !request.http11))
      error = http::error::bad_transfer_encoding;
    if (name == "expect") expects_continue = request.http11 && Lower(value) == "100-continue";
    if (name == "host") {
      std::string host;
      if (++n_hosts_ > 1 || !ReadHost(value, host)) error = http::error::bad_field;
      if (!absolute_) request.host = std::move(host);  // else the target has the host
    }
    if (++n_fields > limits_.n_fields) error = http::error::header_limit;
    request.fields.emplace_back(std::move(name), value);
  }

  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code& error) override {
    if (request.http11 && n_hosts_ == 0) error = http::error::bad_field;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return Append(body); }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code& error) override {
    if (size > limits_.body_bytes - request.body.size()) error = http::error::body_limit;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    return Append(body);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t Append(string_view body) {
    // A body that will be large grows once, because copies would take longer than reading it.
    const auto length = content_length();
    if (length && request.body.size() >= kLargeBody && *length <= limits_.body_bytes)
      request.body.reserve(static_cast<std::size_t>(*length));
    request.body.append(body.data(), body.size());
    return body.size();
  }

  const Limits limits_;
  int n_hosts_ = 0;
  bool absolute_ = false;
};

RequestReader::RequestReader(const Limits& limits) : limits_(limits) {}
RequestReader::~RequestReader() = default;

std::size_t RequestReader::Read(std::string_view input) {
  if (state_ == State::kBody) return ReadBody(input);
  std::size_t begin = 0;
  if (state_ == State::kEmpty) {  // some clients send empty lines between requests
    begin = std::min(input.find_first_not_of("\r\n"), input.size());
    if (begin == input.size()) return begin;
    parser_ = std::make_unique<Parser>(limits_);
    state_ = State::kHead;
  }
  return begin + ReadHead(input.substr(begin));
}

std::size_t RequestReader::ReadHead(std::string_view input) {
  error_code error;
  const std::size_t used = parser_->put({input.data(), input.size()}, error);
  const bool ended = parser_->is_header_done();
  header_bytes_ += used;
  const std::string_view lines = input.substr(0, used);
  const bool more = error == http::error::need_more, too_large = error == http::error::header_limit;
  if (error && !more && !too_large)
    Refuse(400);
  else if (too_large || header_bytes_ + (ended ? 0 : input.size() - used) > limits_.header_bytes)
    Refuse(431);
  else if (lines.find("\r\n ") != lines.npos || lines.find("\r\n\t") != lines.npos)
    Refuse(400);  // Beast would join such lines; others read them as two
  else if (ended)
    state_ = parser_->is_done() ? State::kWhole : State::kBody;
  return used;
}

std::size_t RequestReader::ReadBody(std::string_view input) {
  if (const auto length = parser_->content_length(); length && *length > limits_.body_bytes)
    return Refuse(413), 0;
  std::size_t used = 0;
  while (used < input.size() && !parser_->is_done()) {
    error_code error;
    const std::string_view rest = input.substr(used);
    if (parser_->chunked() && rest.size() < kLastChunk) return used;
    const std::size_t n = parser_->put({rest.data(), rest.size()}, error);
    used += n;
    body_wire_bytes_ += n;
    if (body_wire_bytes_ > 2 * limits_.body_bytes + limits_.header_bytes)  // framing costs too
      return Refuse(413), used;
    if (error == http::error::need_more) {
      if (parser_->chunked()) CheckChunkLine(input.substr(used));
      return used;
    }
    if (error) return Refuse(error == http::error::body_limit ? 413 : 400), used;
  }
  if (parser_->is_done()) state_ = State::kWhole;
  return used;
}

// Checks `rest`, which begins with a chunk's line (possibly after the end of the chunk before it)
// and, if that is the last chunk, continues with trailers.
void RequestReader::CheckChunkLine(std::string_view rest) {
  if (rest.starts_with("\r\n")) rest.remove_prefix(2);
  if (std::min(rest.find("\r\n"), rest.size()) > kMaxChunkLine)
    Refuse(400);
  else if (rest.size() > limits_.header_bytes + kMaxChunkLine)
    Refuse(431);
}

void RequestReader::Refuse(int status) {
  state_ = State::kRefused;
  refusal_ = status;
}

HttpRequest& RequestReader::request() {
  return parser_ ? parser_->request : nothing_;
}

std::size_t RequestReader::head_bytes() const {
  if (!parser_) return 0;
  return sizeof(Parser) + 2 * header_bytes_ + parser_->n_fields * sizeof(HttpFields::value_type);
}

bool RequestReader::keeps_connection() const {
  return parser_->keep_alive();
}

bool RequestReader::expects_continue() const {
  return parser_->expects_continue;
}

void RequestReader::Restart() {
  parser_.reset();
  nothing_ = {};
  state_ = State::kEmpty;
  refusal_ = 0;
  header_bytes_ = body_wire_bytes_ = 0;
}

}  // namespace foretoken::server
