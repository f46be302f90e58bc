// SPDX-License-Identifier: Apache-2.0
// settings/speculative_sources.h: where settings of speculation come from. What stands further left
// wins: request > flags > environment > file > defaults. A profile is named by a setting and brings
// measured costs; it overrides none of these.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"

namespace foretoken::settings {

// The value of a variable; none where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// "num_speculative_tokens" -> "FORETOKEN_NUM_SPECULATIVE_TOKENS".
std::string VariableOf(std::string_view key);

struct SpeculativeFile {
  std::string path;  // empty: none; JSON text where it begins with '{'
  std::string section = std::string(kSpeculativeSection);
};

// The file's settings and then the environment's into `options`; the caller's flags follow, and a
// request's own fields override all in the engine. A variable that is set and empty counts as
// unset. Errors: kInvalidArgument, naming file and line, or the variable.
[[nodiscard]] Status ReadSpeculativeSources(const SpeculativeFile& file,
                                            const Environment& environment,
                                            SpeculativeOptions& options);

}  // namespace foretoken::settings
