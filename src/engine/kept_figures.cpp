// SPDX-License-Identifier: Apache-2.0
// What an engine keeps for the next one when it ends: blocks of its cache, what its passes cost, how often
// its drafts were accepted, and how often a copy of the model was right.
#include <algorithm>
#include <new>

#include "engine/impl.h"

namespace foretoken {
namespace {

constexpr int kWorthKeeping = 64;    // passes that taught something about costs
constexpr int kWorthComparing = 96;  // rounds that show how often a copy is right

}  // namespace

Engine::Impl::~Impl() {
  // Where it could not be opened, files_ may name a runner that is gone.
  if (!estimates_ || !accounting_) return;
  if (opened_.cache && WhyNot()) opened_.cache->KeepAll();
  try {
    if (kept_costs_.keeps() && estimates_->costs.n_read() >= kWorthKeeping)
      kept_costs_.Write({estimates_->costs.Learned(), estimates_->controller->Learned()});
    KeepCopyFigure();
  } catch (const std::bad_alloc&) {  // the next engine measures alone
  }
}

// What rounds have shown of a copy of the model, if that is more than what is known.
void Engine::Impl::KeepCopyFigure() const {
  if (!copy_.file.keeps()) return;
  const draft_length::LearnedCosts costs = estimates_->costs.Learned();
  if (costs.passes.empty() || costs.passes.front().rows != 1) return;
  for (int d = 0; d < drafters_.size(); ++d) {
    const engine::Accounting::FirstDrafts& first = accounting_->first_drafts(d);
    const double draft_us = costs.drafts[static_cast<std::size_t>(d)].one_us;
    const bool is_copy = drafters_[d].spec != nullptr && drafters_[d].spec->info.copies_target &&
                         drafters_[d].least_context == 0;
    if (!is_copy || draft_us <= 0 ||
        first.rounds <= std::max(kWorthComparing, copy_.file.PositionsOf(copy_.types)))
      continue;
    copy_.file.Write({.types = copy_.types,
                      .agreed = first.accepted,
                      .positions = first.rounds,
                      .cost = draft_us / costs.passes.front().us});
  }
}

}  // namespace foretoken
