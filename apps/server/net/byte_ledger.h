// SPDX-License-Identifier: Apache-2.0
// server/net/byte_ledger.h: counts the bytes that connections and their requests hold together,
// from a request's first byte until the last byte of its answer has left: header, body, work that
// waits for the engine, unread events, the answer's text. Any thread may use it.
#pragma once

#include <atomic>
#include <cstddef>

#include "foretoken/event_stream.h"

namespace foretoken::server {

// Must outlive its accounts.
class ByteLedger {
 public:
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }

  // The bytes of one connection and its requests: the sum of its holds, which keep it alive.
  class Account : public ByteCounter {
   public:
    explicit Account(ByteLedger& ledger) : ledger_(ledger) {}
    std::size_t held() const { return held_.load(std::memory_order_relaxed); }
    void Add(std::size_t bytes) noexcept override {  // may be negative for a moment
      held_.fetch_add(bytes, std::memory_order_relaxed);
      ledger_.held_.fetch_add(bytes, std::memory_order_relaxed);
    }

   private:
    ByteLedger& ledger_;
    std::atomic<std::size_t> held_ = 0;
  };

 private:
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace foretoken::server
