// SPDX-License-Identifier: Apache-2.0
// engine/step/flat_pass.h: a pass as the target runs it: the sequences' tokens as rows, one behind
// the other, and which rows want logits.
#pragma once

#include <vector>

#include "base/ids.h"
#include "engine/requests/sequence.h"
#include "engine/step/pass_plan.h"
#include "engine/step/proposals.h"
#include "kv/block_tables.h"
#include "model/pass.h"

namespace foretoken::engine {

// A sequence's rows.
struct SequenceRows {
  int first_row = 0;
  int first_logit = 0;      // the row of logits that follows the newest committed token
  int n_prompt_logits = 0;  // rows of logits before it, for the prompt's log-probabilities
  int first_position = 0;   // positions that the cache held before the pass
};

struct FlatPass {
  std::vector<SequenceRows> entries;  // as in the plan
  std::vector<Token> tokens;
  std::vector<kv::Segment> segments;
  std::vector<int> logit_rows;
  std::vector<kernels::Choice> choices;  // of each row of logits, if `chooses`
  bool wants_states = false;             // a sequence's embedding is made of them
  bool chooses = false;  // a row is not wanted whole where verification needs one token of it

  FlatPass(int sequences, int max_rows);
  model::Pass View() const {
    return {.tokens = tokens,
            .segments = segments,
            .logit_rows = logit_rows,
            .choices = choices,
            .wants_states = wants_states};
  }
  int n_rows() const { return static_cast<int>(tokens.size()); }
  void Clear() noexcept;
  // Puts a sequence's tokens behind the others.
  void Add(SeqId seq, int cached, std::span<const Token> text, std::span<const Token> drafts);
};

// Allocates nothing.
void Flatten(const PassPlan& plan, const Proposals& drafts, const Sequences& sequences,
             const kv::BlockTables& cache, FlatPass& pass) noexcept;

}  // namespace foretoken::engine
