// SPDX-License-Identifier: Apache-2.0
// loader/ranks/model_agreement.h: whether all ranks have the same model file.
#pragma once

#include <string>

#include "comm/ranks.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"

namespace foretoken::loader {

// All ranks call it together. file: null where it cannot be opened, and `why` says why. Errors, the same
// on each rank: kMismatch (another file, or none), kRankLost.
[[nodiscard]] Status AgreeOnModel(comm::Ranks& ranks, const std::string& path,
                                  const formats::Checkpoint* file, const std::string& why);

}  // namespace foretoken::loader
