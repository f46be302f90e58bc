// SPDX-License-Identifier: Apache-2.0
#include "model/arch/windows.h"

#include <fmt/format.h>

namespace foretoken::model {
namespace {

constexpr std::string_view kPattern = "attention.sliding_window_pattern";

Result<std::vector<bool>> WindowLayers(const MetadataReader& read, int period, std::size_t n) {
  std::vector<bool> has_window(n);
  if (const auto* list = read.Ints(kPattern); list != nullptr) {
    if (list->size() < n)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: a list of {} values for {} blocks; this is not a complete model "
                              "file",
                              read.Key(kPattern), list->size(), n));
    for (std::size_t i = 0; i < n; ++i) has_window[i] = (*list)[i] != 0;
    return has_window;
  }
  const std::int64_t p = read.Int(kPattern).value_or(period);
  if (p < 0 || p > 1024)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to 1024)", read.Key(kPattern), p));
  for (std::size_t i = 0; i < n; ++i)
    has_window[i] = p == 0 || static_cast<std::int64_t>(i) % p != p - 1;
  return has_window;
}

}  // namespace

Status ReadWindows(const MetadataReader& read, int period, ModelConfig& config) {
  const std::int64_t size = read.Int("attention.sliding_window").value_or(0);
  if (size == 0) return {};
  if (size < 0 || size > 1 << 30)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to {})",
                            read.Key("attention.sliding_window"), size, 1 << 30));
  FORETOKEN_TRY(const auto has_window, WindowLayers(read, period, config.layers.size()));
  for (std::size_t i = 0; i < has_window.size(); ++i)
    if (has_window[i]) config.layers[i].attention().window = static_cast<int>(size);
  return {};
}

}  // namespace foretoken::model
