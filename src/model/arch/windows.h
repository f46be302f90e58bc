// SPDX-License-Identifier: Apache-2.0
// model/arch/windows.h: which layers have a sliding window.
#pragma once

#include <vector>

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

// Sets the window of the layers that have one. The key attention.sliding_window gives its size; no
// layer has a window where the key is missing or 0. The key attention.sliding_window_pattern is a
// truth value for each layer, or a period p: each p-th layer sees all positions, and with period 0
// none does. period: the one of a file that does not say. Errors: kInvalidFile.
[[nodiscard]] Status ReadWindows(const MetadataReader& read, int period, ModelConfig& config);

}  // namespace foretoken::model
