// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/weight_files.h: which files of a folder hold the weights.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::formats::huggingface {

struct WeightFiles {
  std::vector<std::string> paths;
  // The path that model.safetensors.index.json names for each tensor; empty if there is no index.
  std::map<std::string, std::string, std::less<>> path_of;
};

// model.safetensors, or the files that model.safetensors.index.json names, all in the folder itself.
// Errors: kNotFound (a file is missing), kInvalidFile (a folder without weights, a damaged index, a
// name that leads out of the folder), kIo.
[[nodiscard]] Result<WeightFiles> FindWeightFiles(const std::string& folder);

}  // namespace foretoken::formats::huggingface
