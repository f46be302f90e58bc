// SPDX-License-Identifier: Apache-2.0
// settings/environment.h: environment variables, and those that nothing reads.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::settings {

// The value of a variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();
std::vector<std::string> ProcessVariables();  // the names of those that are set

// "num_speculative_tokens" -> "FORETOKEN_NUM_SPECULATIVE_TOKENS".
std::string VariableOf(std::string_view key);

// A line for each name that begins with FORETOKEN_ and that neither the programs nor the project's
// tools and tests read: probably a typing error. It contains the nearest name that exists.
std::vector<std::string> UnknownVariables(std::span<const std::string> names);

}  // namespace foretoken::settings
