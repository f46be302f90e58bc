// SPDX-License-Identifier: Apache-2.0
// draft/networks/output_views.h: a drafter whose network can draft in several ways, as several drafters: with
// the whole output, with a reduced one, which costs less and misses the tokens that it lacks, and with the
// least output it has and a window, which costs less behind a long text and misses what lies before it. They share
// the network, its cache, and what it has read of each text, so any of them may draft in any round.
#pragma once

#include <memory>

#include "draft/drafter.h"

namespace foretoken::draft {

struct OutputViews {
  std::unique_ptr<Drafter> reduced, whole, narrow;  // reduced, narrow: null where it has none
};

OutputViews ViewsOf(std::unique_ptr<Drafter> drafter, int max_sequences);

}  // namespace foretoken::draft
