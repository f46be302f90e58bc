// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/found_drafts.h: which drafts an engine would find in and beside a model's file
// (EngineOptions::find_drafts). No weights are loaded.
#pragma once

#include <string>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

struct FoundDrafts {
  struct Draft {
    std::string method;  // "eagle"
    std::string path;    // the model's own where its file contains the head
  };
  std::vector<Draft> drafts;                  // in the order in which an engine lists them
  std::vector<std::string> notices, details;  // about other files, as in EngineSummary
};

// The drafts of Engine::Open with the same options, if these name no file. Errors: those of the model's
// file, and as Engine::Open where a method that is named finds no file.
[[nodiscard]] Result<FoundDrafts> FindDrafts(EngineOptions options);

}  // namespace foretoken
