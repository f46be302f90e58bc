// SPDX-License-Identifier: Apache-2.0
// server/net/quota.h: limits how many of something each client may have: connections of an address,
// requests of an address or of a key. Any thread may use it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace foretoken::server {

// Must outlive its shares.
class Quota {
 public:
  explicit Quota(int limit) : limit_(limit) {}  // for each client; 0: none
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // What a client has, until this is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept;
    Share& operator=(Share&& other) noexcept;
    ~Share();
    // Adds n. False: that would exceed the limit, and nothing changed.
    bool Grow(int n);

   private:
    friend class Quota;
    Share(Quota& quota, std::string client) : quota_(&quota), client_(std::move(client)) {}

    Quota* quota_ = nullptr;
    std::string client_;
    int n_ = 0;
  };

  // Takes one. Nothing: the client already has as many as it may.
  std::optional<Share> Take(const std::string& client);

 private:
  bool Add(const std::string& client, int n);

  const int limit_;
  std::mutex mutex_;
  std::map<std::string, int> held_;  // guarded; no zeros
};

}  // namespace foretoken::server
