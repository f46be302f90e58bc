// SPDX-License-Identifier: Apache-2.0
// lab/tune_choice.h: chooses the way of drafting that `tune` recommends.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace foretoken::lab {

// speedups[i][r]: trial i in repeat r. Trials are in the order of their estimates, and each repeat
// ran all of them one after another. A trial replaces plain decoding, and then another trial, only
// if it was faster in every repeat and by more than the repeats scatter. A single run, or a lead
// within the noise of a few runs, replaces nothing. Empty: plain decoding stays.
std::optional<std::size_t> ChooseTrial(const std::vector<std::vector<double>>& speedups);

}  // namespace foretoken::lab
