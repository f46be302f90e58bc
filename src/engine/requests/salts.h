// SPDX-License-Identifier: Apache-2.0
// engine/requests/salts.h: the numbers that stand for requests' salts (Request::cache_salt).
#pragma once

#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"

namespace foretoken::engine {

// A number is never given twice. A salt that was not used for long loses its number, and with it what
// its texts left behind: that is then found no more, and makes room as it gets old.
class Salts {
 public:
  static constexpr std::size_t kMost = 1024;  // salts that have numbers

  // kNoSalt for "". Throws std::bad_alloc if there is no memory; nothing has changed then.
  SaltId Of(const std::string& salt) {
    if (salt.empty()) return kNoSalt;
    if (const auto known = ids_.find(salt); known != ids_.end()) {
      used_.splice(used_.begin(), used_, known->second);
      return known->second->second;
    }
    used_.emplace_front(salt, last_ + 1);
    try {
      ids_.emplace(used_.front().first, used_.begin());
    } catch (...) {
      used_.pop_front();
      throw;
    }
    if (ids_.size() > kMost) {
      ids_.erase(used_.back().first);
      used_.pop_back();
    }
    return ++last_;
  }
  std::size_t size() const { return ids_.size(); }

 private:
  using Used = std::list<std::pair<std::string, SaltId>>;  // the latest used first
  Used used_;
  // A tree, whose cost no chosen salts raise. Its names are those of the list.
  std::map<std::string_view, Used::iterator> ids_;
  SaltId last_ = kNoSalt;
};

}  // namespace foretoken::engine
