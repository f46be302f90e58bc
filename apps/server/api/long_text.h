// SPDX-License-Identifier: Apache-2.0
// server/api/long_text.h: a text that may be much longer than its source, written part by part as
// its reader takes it, so that it is never in memory as a whole.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace foretoken::server {

class LongText {
 public:
  void Add(std::string text) {
    AddLater([text = std::move(text)](std::string& out) { out += text; });
  }
  // `write` appends its part when the text gets there. A part should be short.
  void AddLater(std::function<void(std::string& out)> write) {
    AddEach(1, [write = std::move(write)](std::size_t, std::string& out) { write(out); });
  }
  // Calls write(0, out) to write(n - 1, out), one after the other.
  void AddEach(std::size_t n, std::function<void(std::size_t, std::string& out)> write) {
    if (n > 0) parts_.push_back({n, 0, std::move(write)});
  }
  // Adds a JSON list of item(0, out) to item(n - 1, out), each of which is JSON.
  void AddList(std::size_t n, std::function<void(std::size_t, std::string& out)> item) {
    Add("[");
    AddEach(n, [item = std::move(item)](std::size_t i, std::string& out) {
      if (i > 0) out += ',';
      item(i, out);
    });
    Add("]");
  }

  void Add(LongText text) {
    for (Part& part : text.parts_) parts_.push_back(std::move(part));
  }

  // Appends the next parts, until `out` has `bytes` or the text has ended.
  void Write(std::size_t bytes, std::string& out) {
    while (!parts_.empty() && out.size() < bytes) {
      Part& part = parts_.front();
      part.write(part.next, out);
      if (++part.next == part.n) parts_.pop_front();
    }
  }
  bool ended() const { return parts_.empty(); }

 private:
  struct Part {
    std::size_t n = 0, next = 0;
    std::function<void(std::size_t, std::string& out)> write;
  };
  std::deque<Part> parts_;
};

}  // namespace foretoken::server
