// SPDX-License-Identifier: Apache-2.0
#include "engine/step/flat_pass.h"

#include <algorithm>

namespace foretoken::engine {
namespace {

// Row p of a prompt gives the log-probabilities of token p + 1, so a pass that reads the row has
// logits for it. A preempted prompt is read again, without logits for tokens that have theirs.
int AskPromptLogits(const Sequence& s, int cached, int n_feed, int first_row,
                    std::vector<int>& logit_rows) {
  if (!s.awaits_prompt_logprobs()) return 0;
  const int first = static_cast<int>(s.completion.prompt_logprobs.size());
  const int end = std::min(cached + n_feed, static_cast<int>(s.job->prompt.size()) - 1);
  for (int p = first; p < end; ++p) logit_rows.push_back(first_row + p - cached);
  return std::max(0, end - first);
}

}  // namespace

FlatPass::FlatPass(int sequences, int max_rows) {
  const auto n = static_cast<std::size_t>(sequences), most = static_cast<std::size_t>(max_rows);
  entries.reserve(n), segments.reserve(n);
  tokens.reserve(most), logit_rows.reserve(most), choices.reserve(most);
}

void FlatPass::Clear() noexcept {
  entries.clear(), tokens.clear(), segments.clear(), logit_rows.clear(), choices.clear();
  wants_states = false;
}

void FlatPass::Add(SeqId seq, int cached, std::span<const Token> text,
                   std::span<const Token> drafts) {
  const int first_row = n_rows(), n = static_cast<int>(text.size() + drafts.size());
  tokens.insert(tokens.end(), text.begin(), text.end());
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());
  segments.push_back({.seq = seq,
                      .row_begin = first_row,
                      .n_rows = n,
                      .first_position = cached,
                      .n_certain = static_cast<int>(text.size())});
}

void Flatten(const PassPlan& plan, const Proposals& drafts, const Sequences& sequences,
             const kv::BlockTables& cache, FlatPass& pass) noexcept {
  pass.Clear();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PlannedSequence& planned = plan.entries[i];
    const round::Proposal& proposal = drafts.entries[i].proposal;
    const Sequence& s = sequences.At(planned.seq);
    const int cached = cache.length(planned.seq);
    SequenceRows& rows = pass.entries.emplace_back();
    rows.first_row = pass.n_rows();
    rows.first_position = cached;
    if (planned.prefill)
      rows.n_prompt_logits =
          AskPromptLogits(s, cached, planned.n_feed, rows.first_row, pass.logit_rows);
    pass.wants_states |= s.awaits_embedding();
    rows.first_logit = static_cast<int>(pass.logit_rows.size());
    const auto feed = s.sampler.text().subspan(static_cast<std::size_t>(cached),
                                               static_cast<std::size_t>(planned.n_feed));
    pass.Add(planned.seq, cached, feed, proposal.tokens);
    pass.segments.back().ends_prompt = planned.prefill && planned.decodes;
    if (!planned.decodes) continue;
    for (int row = 0; row <= proposal.length(); ++row) {
      if (pass.chooses) pass.choices.resize(pass.logit_rows.size());
      if (pass.chooses && !s.reads_logits())
        pass.choices.push_back(s.verifier->ChoiceOf(proposal.length(), row, s.sampler));
      pass.logit_rows.push_back(rows.first_row + planned.n_feed - 1 + row);
    }
  }
  if (pass.chooses) pass.choices.resize(pass.logit_rows.size());
}

}  // namespace foretoken::engine
