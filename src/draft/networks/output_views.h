// SPDX-License-Identifier: Apache-2.0
// draft/networks/output_views.h: a drafter whose network has two outputs, as two drafters: one drafts with
// the whole output, the other with the reduced one, which costs less and misses the tokens that it
// lacks. They share the network, its cache, and what it has read of each text, so either may draft in
// any round.
#pragma once

#include <memory>

#include "draft/drafter.h"

namespace foretoken::draft {

struct OutputViews {
  std::unique_ptr<Drafter> reduced, whole;
};

// REQUIRES: the drafter has a reduced output.
OutputViews ViewsOf(std::unique_ptr<Drafter> drafter, int max_sequences);

}  // namespace foretoken::draft
