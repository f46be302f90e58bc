// SPDX-License-Identifier: Apache-2.0
// base/argument_checks.h: checks of the numbers and token ids that a caller gives.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "foretoken/result.h"

namespace foretoken {


// Errors: kInvalidArgument with the name, unless least <= value <= most.
[[nodiscard]] Status CheckRange(std::string_view name, std::int64_t value, std::int64_t least,
                                std::int64_t most);

// CheckRange with the range of an option of the engine, by its key (option_keys.h).
[[nodiscard]] Status CheckEngineOption(std::string_view key, int value);

// Errors: kInvalidArgument with the name and the first id that is not in [0, vocabulary).
[[nodiscard]] Status CheckTokens(std::string_view name, std::span<const Token> tokens,
                                 int vocabulary);

}  // namespace foretoken
