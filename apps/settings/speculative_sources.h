// SPDX-License-Identifier: Apache-2.0
// settings/speculative_sources.h: the sources of speculative settings. The one further left wins:
// request > flags > environment > file > profile > defaults. A profile is named by a setting. It
// provides measured costs, and its recommendation where no method, draft file and K are set.
#pragma once

#include <string>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"
#include "settings/environment.h"

namespace foretoken::settings {

struct SpeculativeFile {
  std::string path;  // empty: none; JSON text if it begins with '{'
  std::string section = std::string(kSpeculativeSection);
  ConfigDialect dialect = ConfigDialect::kForetoken;
};

// A setting from some source.
struct GivenSetting {
  const SpeculativeKey* key = nullptr;
  std::string name;  // as in its source: "--ngram-max", "FORETOKEN_NGRAM_MAX"
  bool in_file = false;
};

// Reads the file's settings and then the environment's into `options`, and records them in `given`.
// The caller's flags follow, and a request's own fields override everything in the engine. A
// variable that is empty counts as not set. Errors: kInvalidArgument, with file and line, or the
// variable.
[[nodiscard]] Status ReadSpeculativeSources(const SpeculativeFile& file,
                                            const Environment& environment,
                                            SpeculativeOptions& options,
                                            std::vector<GivenSetting>& given);

}  // namespace foretoken::settings
