// SPDX-License-Identifier: Apache-2.0
#include "base/files/read_ahead.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace foretoken {
namespace {

constexpr std::size_t kTouchedPage = 4096;
// Linux reads at most the device's read-ahead for one call, which is 128 KiB or more.
constexpr std::size_t kCallPages = 32;

}  // namespace

std::size_t ReadAhead(std::span<const std::byte> range) noexcept {
  std::array<unsigned char, 1024> present;
  std::byte* const begin = const_cast<std::byte*>(range.data()) -
                           reinterpret_cast<std::uintptr_t>(range.data()) % kTouchedPage;
  const std::byte* const end = range.data() + range.size();
  const std::size_t n_pages =
      (static_cast<std::size_t>(end - begin) + kTouchedPage - 1) / kTouchedPage;
  std::size_t absent = 0;
  for (std::size_t first = 0; first < n_pages; first += present.size()) {
    const std::size_t n = std::min(present.size(), n_pages - first);
    std::byte* const at = begin + first * kTouchedPage;
    if (mincore(at, n * kTouchedPage, present.data()) != 0) return absent * kTouchedPage;
    for (std::size_t page = 0; page < n;) {
      if ((present[page] & 1) != 0) {
        ++page;
        continue;
      }
      std::size_t last = page + 1;  // of the pages that one call asks for
      while (last < n && last - page < kCallPages && (present[last] & 1) == 0) ++last;
      madvise(at + page * kTouchedPage, (last - page) * kTouchedPage, MADV_WILLNEED);
      absent += last - page;
      page = last;
    }
  }
  return absent * kTouchedPage;
}

}  // namespace foretoken
