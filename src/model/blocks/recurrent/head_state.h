// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/head_state.h: the state of a head, which takes in positions.
#pragma once

#include "model/blocks/phase.h"
#include "model/blocks/recurrent/positions.h"

namespace foretoken::model {

struct HeadState {
  int layer;
  SeqId seq;
  int head;  // among those of this rank
};

// Runs advance_state on these positions. The state begins with zeros at position 0 of a sequence.
// `args` has all but the state and the numbers of positions; `out` is that of the first row.
void AdvanceState(const Workspace& space, const HeadState& of, const Positions& positions,
                  kernels::StateArgs args) noexcept;

}  // namespace foretoken::model
