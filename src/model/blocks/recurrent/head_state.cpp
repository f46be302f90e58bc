// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/head_state.h"

#include <algorithm>

namespace foretoken::model {

void AdvanceState(const Workspace& space, const HeadState& of, const Positions& positions,
                  kernels::StateArgs args) noexcept {
  const std::int64_t numbers = std::int64_t{args.n_in} * args.n_out;
  args.state = space.states.State(of.layer, of.seq) + of.head * numbers;
  if (positions.first == 0) std::fill_n(args.state, numbers, 0.0f);
  args.n_steps = positions.n;
  args.n_kept = positions.n_kept;
  args.n_silent = positions.n_silent;
  space.kernels.advance_state(args);
}

}  // namespace foretoken::model
