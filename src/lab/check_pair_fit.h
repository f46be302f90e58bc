// SPDX-License-Identifier: Apache-2.0
// lab/check_pair_fit.h: compares two model files before anything is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "foretoken/result.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::lab {

struct FileFacts {
  std::string path, architecture, type;
  std::int64_t parameters = 0, bytes = 0;
  std::string drafts_as;  // the drafter: "standalone", "eagle"
  std::string obstacle;   // why this build cannot run it; "" if it can
};

struct PairFit {
  FileFacts target;
  // Absent if a lookup drafts.
  std::optional<FileFacts> draft;
  VocabularyDifference vocabulary;
  // How a draft model of another vocabulary reads and writes the model's tokens.
  std::optional<TokenMap> map = {};
  // Why the draft cannot be used for the model; "" if it can.
  std::string obstacle() const;
};

// draft "": a lookup, which fits every model. Errors: those of the files.
[[nodiscard]] Result<PairFit> ExamineFiles(const std::string& target, const std::string& draft);

}  // namespace foretoken::lab
