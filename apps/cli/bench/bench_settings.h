// SPDX-License-Identifier: Apache-2.0
// cli/bench/bench_settings.h: the flags of `bench`.
#pragma once

#include <vector>

#include "cli/pair/pair_settings.h"

namespace foretoken::cli {

struct BenchSettings : PairSettings {
  int repeats = 3;  // of each run; passes are short and are repeated more often
  std::vector<int> rows = {1, 2, 4, 8, 16};
  std::vector<int> contexts;  // empty: chosen when the model's context is known
  std::vector<int> batches = {1};
};

// The flags write into `settings`, which must live as long as the FlagSet.
settings::FlagSet BenchFlags(BenchSettings& settings);

// After Parse. Errors: those of settings::Finish.
[[nodiscard]] Status Finish(BenchSettings& settings);

}  // namespace foretoken::cli
