// SPDX-License-Identifier: Apache-2.0
// server/routes/fill_marks.h: the tokens between which models for code are told to fill a gap.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "foretoken/engine.h"
#include "server/api/api_error.h"
#include "server/api/llama_cpp_schema.h"

namespace foretoken::server {

struct FillMarks {
  std::int32_t prefix = 0, suffix = 0, middle = 0;
  std::optional<std::int32_t> repository, file;  // of other files
  std::vector<std::int32_t> ends;                // behind what fills the gap
};
// Found by their names. Error: the vocabulary lacks them; which ones.
[[nodiscard]] Parsed<FillMarks> FindFillMarks(const Engine& engine);

// The prompt that asks what is in the gap. room: the most tokens; other files that do not fit are
// left out, the first ones first. n_left_out: how many.
std::vector<std::int32_t> GapTokens(const Engine& engine, const FillMarks& marks,
                                    const LlamaCppGap& gap, std::size_t room,
                                    std::size_t& n_left_out);

}  // namespace foretoken::server
