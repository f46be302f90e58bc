// SPDX-License-Identifier: Apache-2.0
// engine/step/estimates.h: what an engine knows of the cost of its passes, and what it decides with
// it: draft lengths, and how many prompt rows a pass may have.
#pragma once

#include <memory>

#include "draft_length/registry.h"
#include "draft_length/round_costs.h"
#include "engine/step/prompt_rows.h"
#include "foretoken/options.h"

namespace foretoken::engine {

struct Estimates {
  draft_length::RoundCosts costs;  // learned from every pass
  // These never change. They come from a profile or from the sizes of the files, and choose the
  // draft lengths of requests whose text depends on them.
  draft_length::RoundCosts fixed_costs;
  PromptRows prompt_rows;
  std::unique_ptr<draft_length::Controller> controller;

  // The options must outlive it, and it stays where it is: the controller reads the costs.
  Estimates(const EngineOptions& options, int max_rows, int n_drafters)
      : costs(max_rows, n_drafters, options.max_sequences),
        fixed_costs(max_rows, n_drafters),
        prompt_rows(options.prefill_rows),
        controller(draft_length::MakeController(
            {.name = options.speculative.controller,
             .max_sequences = options.max_sequences,
             .n_drafters = n_drafters,
             .adaptive_lookahead = options.speculative.adaptive_lookahead,
             .batch_sizes = options.speculative.num_speculative_tokens_per_batch_size,
             .widths = options.speculative.adaptive_speculative_widths,
             .costs = &costs,
             .fixed_costs = &fixed_costs})) {}
  Estimates(const Estimates&) = delete;
  Estimates& operator=(const Estimates&) = delete;
};

}  // namespace foretoken::engine
