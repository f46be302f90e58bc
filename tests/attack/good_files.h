// SPDX-License-Identifier: Apache-2.0
// attack/good_files.h: the model files that the mutator starts from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attack/model_mutator.h"

namespace foretoken::attack {

struct GoodFiles {
  std::vector<GoodFile> files;
  std::string target, draft;  // paths of a whole model and of one that drafts for it
};

// Files of every architecture, every number type and every kind of head, folders of safetensors
// files, and the files of `more`. The target and the draft are written into `folder`.
GoodFiles MakeGoodFiles(const std::string& folder, std::span<const std::string> more);

}  // namespace foretoken::attack
