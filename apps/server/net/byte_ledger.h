// SPDX-License-Identifier: Apache-2.0
// server/net/byte_ledger.h: counts the bytes that connections and their requests hold together,
// from a request's first byte until the last byte of its answer has left: header, body, work that
// waits for the engine, unread events, the answer's text. Any thread may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace foretoken::server {

// Must outlive its accounts.
class ByteLedger {
 public:
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }

  // The bytes of one connection and its requests: the sum of its holds, which keep it alive.
  class Account {
   public:
    explicit Account(ByteLedger& ledger) : ledger_(ledger) {}
    std::size_t held() const { return held_.load(std::memory_order_relaxed); }

   private:
    friend class ByteLedger;
    void Add(std::size_t bytes) {  // modulo 2^64, because it may be negative for a moment
      held_.fetch_add(bytes, std::memory_order_relaxed);
      ledger_.held_.fetch_add(bytes, std::memory_order_relaxed);
    }

    ByteLedger& ledger_;
    std::atomic<std::size_t> held_ = 0;
  };

  // A part of an account, as long as it lives. One thread at a time.
  class Hold {
   public:
    Hold() = default;
    explicit Hold(std::shared_ptr<Account> account, std::size_t bytes = 0)
        : account_(std::move(account)) {
      Set(bytes);
    }
    ~Hold() { Set(0); }
    Hold(Hold&& other) noexcept
        : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(account_, other.account_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    void Set(std::size_t bytes) {
      if (account_) account_->Add(bytes - std::exchange(bytes_, bytes));
    }

   private:
    std::shared_ptr<Account> account_;
    std::size_t bytes_ = 0;
  };

 private:
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace foretoken::server
