// SPDX-License-Identifier: Apache-2.0
// cli/tune_choice.h: which of several ways to draft `tune` recommends.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace foretoken::cli {

// speedups[i][r]: of trial i in repeat r; trials stand in the order of what they promise, and each
// repeat ran all of them one after another. A trial takes the place of plain decoding, and then of
// another trial, only where it was faster in every repeat, and by more than the repeats scatter:
// what runs once, or is ahead by the noise of a few runs, displaces nothing. Empty: plain
// decoding stays.
std::optional<std::size_t> ChooseTrial(const std::vector<std::vector<double>>& speedups);

}  // namespace foretoken::cli
