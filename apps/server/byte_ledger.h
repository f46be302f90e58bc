// SPDX-License-Identifier: Apache-2.0
// server/byte_ledger.h: how many bytes all connections hold together, from a request's first byte
// to the last of its answer. For the thread of all connections.
#pragma once

#include <cstddef>

namespace foretoken::server {

class ByteLedger {
 public:
  explicit ByteLedger(std::size_t limit) : limit_(limit) {}
  bool full() const { return held_ > limit_; }
  std::size_t held() const { return held_; }

  // What one connection holds.
  class Entry {
   public:
    explicit Entry(ByteLedger& ledger) : ledger_(ledger) {}
    ~Entry() { Set(0); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    void Set(std::size_t bytes) {
      ledger_.held_ += bytes - bytes_;  // modulo 2^64, as it may shrink
      bytes_ = bytes;
    }

   private:
    ByteLedger& ledger_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t limit_;
  std::size_t held_ = 0;
};

}  // namespace foretoken::server
