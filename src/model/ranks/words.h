// SPDX-License-Identifier: Apache-2.0
// model/ranks/words.h: reads a message of 32-bit words. What comes from another process is not
// trusted: nothing is read beyond the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace foretoken::model {

class Words {
 public:
  explicit Words(std::span<const std::int32_t> words) : words_(words) {}

  // The next n words; none, and from then on good() is false, if there are not so many.
  std::span<const std::int32_t> Take(std::int64_t n) {
    if (n < 0 || static_cast<std::size_t>(n) > words_.size()) {
      good_ = false;
      return {};
    }
    const auto taken = words_.first(static_cast<std::size_t>(n));
    words_ = words_.subspan(taken.size());
    return taken;
  }
  std::int32_t Take() {
    const auto word = Take(1);
    return word.empty() ? 0 : word[0];
  }
  // A list that begins with its length.
  std::span<const std::int32_t> TakeList() { return Take(Take()); }
  // A text that begins with its length in bytes.
  std::string TakeText() {
    const std::int32_t n = Take();
    const auto words = n < 0 ? Take(-1) : Take(n / 4 + (n % 4 != 0));
    if (!good_) return {};
    return std::string(reinterpret_cast<const char*>(words.data()), static_cast<std::size_t>(n));
  }

  bool good() const { return good_; }
  bool empty() const { return words_.empty(); }

 private:
  std::span<const std::int32_t> words_;
  bool good_ = true;
};

}  // namespace foretoken::model
