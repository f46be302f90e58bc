// SPDX-License-Identifier: Apache-2.0
#include "server/net/quota.h"

#include <utility>

namespace foretoken::server {

Quota::Share::Share(Share&& other) noexcept
    : quota_(std::exchange(other.quota_, nullptr)),
      client_(std::move(other.client_)),
      n_(std::exchange(other.n_, 0)) {}

Quota::Share& Quota::Share::operator=(Share&& other) noexcept {
  std::swap(quota_, other.quota_);
  std::swap(client_, other.client_);
  std::swap(n_, other.n_);
  return *this;
}

Quota::Share::~Share() {
  if (n_ > 0) quota_->Add(client_, -n_);
}

bool Quota::Share::Grow(int n) {
  if (quota_ == nullptr) return true;
  if (!quota_->Add(client_, n)) return false;
  n_ += n;
  return true;
}

std::optional<Quota::Share> Quota::Take(const std::string& client) {
  if (limit_ <= 0) return Share();
  Share share(*this, client);
  if (!share.Grow(1)) return std::nullopt;
  return share;
}

bool Quota::Add(const std::string& client, int n) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(client);
  const int has = found == held_.end() ? 0 : found->second;
  if (n > 0 && has + n > limit_) return false;
  if (has + n == 0) {
    held_.erase(found);
    return true;
  }
  if (found == held_.end())
    held_.emplace(client, n);
  else
    found->second += n;
  return true;
}

}  // namespace foretoken::server
