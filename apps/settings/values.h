// SPDX-License-Identifier: Apache-2.0
// settings/values.h: text to numbers, with the range in the error. The messages begin with the text
// itself, so that with "--temp" before it one reads "--temp: 3 is not in [0, 2]; ...".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::settings {

[[nodiscard]] Result<std::int64_t> ParseInteger(const std::string& text, std::int64_t low,
                                                std::int64_t high);
[[nodiscard]] Result<std::uint64_t> ParseSeed(const std::string& text);
// "inf" and "nan" are refused.
[[nodiscard]] Result<float> ParseNumber(const std::string& text, float low, float high);
// "1,2,3", also with spaces after the commas; "" is not a list.
[[nodiscard]] Result<std::vector<std::int32_t>> ParseTokenIds(const std::string& text);
// "15043=-1.5" or "15043=-inf".
[[nodiscard]] Result<std::pair<std::int32_t, float>> ParseLogitBias(const std::string& text);

}  // namespace foretoken::settings
