// SPDX-License-Identifier: Apache-2.0
// cli/files/quantization.h: how the result of `quantize` is printed.
#pragma once

#include <string>

#include "foretoken/tools/model_file.h"

namespace foretoken::cli {

// "model-Q4_K_M.gguf: Q4_K_M, 2.30 GiB to 763 MiB, 5.16 bits per weight, RMSE 0.0021, 41 s", and a
// newline.
std::string QuantizationLine(const QuantizeReport& report, const std::string& output);
// One JSON object and a newline.
std::string QuantizationJson(const QuantizeReport& report, const std::string& input,
                             const std::string& output);

}  // namespace foretoken::cli
