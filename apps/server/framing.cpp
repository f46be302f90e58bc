// SPDX-License-Identifier: Apache-2.0
#include "server/framing.h"

#include <algorithm>
#include <charconv>

namespace foretoken::server {
namespace {

constexpr std::size_t kMaxChunkLine = 1024;  // its size and extensions, or a trailer

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// REQUIRES: `lower` is in lower case.
bool Same(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return Lower(a) == b; });
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Digits and nothing else.
bool Number(std::string_view text, int base, std::size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "METHOD TARGET HTTP/1.x\r\n"
bool IsRequestLine(std::string_view line) {
  const bool known = line.ends_with(" HTTP/1.1\r\n") || line.ends_with(" HTTP/1.0\r\n");
  return known && line.find('\r') == line.size() - 2;
}

}  // namespace

Framing::State Framing::See(std::string_view input) {
  if (body_begin_ == 0) {
    const State state = SeeHeader(input);
    if (state != State::kWhole) return state;
  }
  return chunked_ ? SeeChunks(input) : SeeBody(input);
}

Framing::State Framing::SeeHeader(std::string_view input) {
  const bool letter = !input.empty() && Lower(input[0]) >= 'a' && Lower(input[0]) <= 'z';
  if (!input.empty() && !letter) return State::kMalformed;
  const std::size_t from = scanned_;
  scanned_ = input.size();
  if (!line_seen_) {
    const std::size_t end = input.find('\n', from);
    line_seen_ = end != std::string_view::npos;
    if (line_seen_ && !IsRequestLine(input.substr(0, end + 1))) return State::kMalformed;
  }
  const std::size_t end = input.find("\r\n\r\n", from < 3 ? 0 : from - 3);
  const bool ended = end != std::string_view::npos;
  if (ended ? end > limits_.header_bytes : input.size() > limits_.header_bytes + 3)
    return State::kHeaderTooLarge;
  if (!ended) return State::kIncomplete;
  body_begin_ = chunk_begin_ = end + 4;
  return Measure(input.substr(0, end + 2)) ? State::kWhole : State::kMalformed;
}

bool Framing::Measure(std::string_view header) {
  if (header.find('\0') != std::string_view::npos) return false;
  std::size_t begin = header.find('\n') + 1;
  while (begin < header.size()) {
    const std::size_t end = header.find("\r\n", begin);
    const std::string_view line = header.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const std::string_view name = line.substr(0, colon);
    if (name.find_first_of(" \t") != std::string_view::npos) return false;
    if (line.find_first_of("\r\n") != std::string_view::npos) return false;  // a line of its own?
    if (!MeasureField(name, Trimmed(line.substr(colon + 1)))) return false;
    begin = end + 2;
  }
  return !(has_length_ && chunked_);
}

bool Framing::MeasureField(std::string_view name, std::string_view value) {
  if (Same(name, "content-length")) {
    std::size_t size = 0;
    if (!Number(value, 10, size) || (has_length_ && size != body_size_)) return false;
    has_length_ = true;
    body_size_ = size;
  } else if (Same(name, "transfer-encoding")) {
    if (chunked_ || !Same(value, "chunked")) return false;
    chunked_ = true;
  } else if (Same(name, "expect")) {
    expects_continue_ = Same(value, "100-continue");
  }
  return true;
}

Framing::State Framing::SeeBody(std::string_view input) {
  if (body_size_ > limits_.body_bytes) return State::kBodyTooLarge;
  return input.size() < size() ? State::kIncomplete : State::kWhole;
}

Framing::State Framing::SeeChunks(std::string_view input) {
  const std::size_t most = 2 * limits_.body_bytes + limits_.header_bytes;  // frames cost, too
  while (true) {
    if (chunk_begin_ - body_begin_ > most) return State::kBodyTooLarge;
    const std::size_t end = input.find("\r\n", chunk_begin_);
    const std::size_t line_size = std::min(end, input.size()) - chunk_begin_;
    if (line_size > kMaxChunkLine) return State::kMalformed;
    if (end == std::string_view::npos) return State::kIncomplete;
    const std::string_view line = input.substr(chunk_begin_, line_size);
    if (in_trailers_) {
      chunk_begin_ = end + 2;
      if (!line.empty()) continue;
      body_size_ = chunk_begin_ - body_begin_;
      return State::kWhole;
    }
    std::size_t bytes = 0;
    if (!Number(Trimmed(line.substr(0, line.find(';'))), 16, bytes)) return State::kMalformed;
    if (bytes > limits_.body_bytes - chunk_bytes_) return State::kBodyTooLarge;
    const std::size_t data_end = end + 2 + bytes;
    in_trailers_ = bytes == 0;
    if (in_trailers_) {
      chunk_begin_ = end + 2;
      continue;
    }
    if (input.size() < data_end + 2) return State::kIncomplete;
    if (input.substr(data_end, 2) != "\r\n") return State::kMalformed;
    chunk_bytes_ += bytes;
    chunk_begin_ = data_end + 2;
  }
}

}  // namespace foretoken::server
