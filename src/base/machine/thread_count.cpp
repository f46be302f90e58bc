// SPDX-License-Identifier: Apache-2.0
#include "base/machine/thread_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/machine/cpus.h"

namespace foretoken {

Result<int> ThreadCount(int asked) {
  constexpr int kMost = 512;
  if (asked == 0) {
    const char* text = std::getenv("FORETOKEN_THREADS");
    if (text == nullptr || *text == '\0') return std::min(UsableCores(), kMost);
    const std::string_view view(text);
    const auto parsed = std::from_chars(view.data(), view.data() + view.size(), asked);
    if (parsed.ec != std::errc() || parsed.ptr != view.data() + view.size() || asked == 0)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("FORETOKEN_THREADS: '{}' is not a number of threads; use 1 to {}",
                              Shown(view), kMost));
  }
  if (asked >= 1 && asked <= kMost) return asked;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("threads: {} is out of range; use 1 to {}", asked, kMost));
}

}  // namespace foretoken
