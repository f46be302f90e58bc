// SPDX-License-Identifier: Apache-2.0
// settings/speculative_sources.h: where settings of speculation come from. What stands further left
// wins: request > flags > environment > file > defaults. A profile is named by a setting and brings
// measured costs; it overrides none of these.
#pragma once

#include <string>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"
#include "settings/environment.h"

namespace foretoken::settings {

struct SpeculativeFile {
  std::string path;  // empty: none; JSON text where it begins with '{'
  std::string section = std::string(kSpeculativeSection);
  ConfigDialect dialect = ConfigDialect::kForetoken;
};

// A setting that some source gave.
struct GivenSetting {
  const SpeculativeKey* key = nullptr;
  std::string name;  // as its source has it: "--ngram-max", "FORETOKEN_NGRAM_MAX"
  bool in_file = false;
};

// The file's settings and then the environment's into `options`, and what they were into `given`;
// the caller's flags follow, and a request's own fields override all in the engine. A variable that
// is set and empty counts as unset. Errors: kInvalidArgument, naming file and line, or the
// variable.
[[nodiscard]] Status ReadSpeculativeSources(const SpeculativeFile& file,
                                            const Environment& environment,
                                            SpeculativeOptions& options,
                                            std::vector<GivenSetting>& given);

}  // namespace foretoken::settings
