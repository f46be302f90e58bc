// SPDX-License-Identifier: Apache-2.0
// tensor/codebooks.h: the codebooks of the IQ types of one to three bits. They are part of the
// format: a code in a file is the number of an entry. The numbers are those of ggml's tables
// iq2xxs_grid, iq2xs_grid, iq2s_grid, iq3xxs_grid, iq3s_grid and iq1s_grid (llama.cpp 0.7.0;
// gguf-py has them in quants.py), packed to 16 bits an entry.
#pragma once

#include <cstdint>

namespace foretoken::tensor {

// IQ2_XXS: bits 2 i and 2 i + 1 name value i of 8: 8, 25 or 43.
extern const std::uint16_t kIq2XxsGrid[256];
// IQ2_XS: likewise.
extern const std::uint16_t kIq2XsGrid[512];
// IQ2_S: likewise.
extern const std::uint16_t kIq2SGrid[1024];
// IQ3_XXS: bits 4 i and up name value i of 4: 4, 12, 20, 28, 36, 44, 52 or 62.
extern const std::uint16_t kIq3XxsGrid[256];
// IQ3_S: bits 4 i and up name value i of 4: 2 n + 1.
extern const std::uint16_t kIq3SGrid[512];
// IQ1_S and IQ1_M: bits 2 i and 2 i + 1 are value i of 8, plus 1.
extern const std::uint16_t kIq1Grid[2048];

}  // namespace foretoken::tensor
