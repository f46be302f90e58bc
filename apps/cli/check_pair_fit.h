// SPDX-License-Identifier: Apache-2.0
// cli/check_pair_fit.h: two model files side by side, before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::cli {

struct FileFacts {
  std::string path, architecture, type;
  std::int64_t parameters = 0, bytes = 0;
  std::string drafts_as;  // "standalone", "eagle", "mtp"
  std::string obstacle;   // why this build cannot run it; "" if it can
};

struct VocabularyDifference {
  int target = 0, draft = 0;       // tokens
  int differing = 0;               // of the ids that both have
  std::vector<std::string> first;  // "17: 'a' / 'b'"
  bool same() const { return target == draft && differing == 0; }
};

struct PairFit {
  FileFacts target, draft;
  VocabularyDifference vocabulary;
  // Why the one cannot draft for the other; "" where nothing is in the way.
  std::string obstacle() const;
};

// Errors: those of the files.
[[nodiscard]] Result<PairFit> ExamineFiles(const std::string& target, const std::string& draft);

}  // namespace foretoken::cli
