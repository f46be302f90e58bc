// SPDX-License-Identifier: Apache-2.0
// The parts of an engine. Everything that a step writes to gets its memory here.
#include "engine/impl.h"

namespace foretoken {

void Engine::Impl::MakeParts(int max_rows, int max_logit_rows) {
  const EngineOptions& o = opened_.options;
  const std::string& path = opened_.summary.target.path;
  kv::BlockTables& cache = *opened_.cache;
  preparation_.emplace(engine::RequestLimits{.vocabulary = opened_.vocabulary,
                                             .context = opened_.context,
                                             .most_positions = opened_.MostPositions(),
                                             .records = !o.record.empty(),
                                             .scores_pairs = opened_.rerank_head != nullptr,
                                             .slots = o.max_sequences},
                       *opened_.tokenizer, *speculation_, opened_.end_tokens);
  estimates_.emplace(o, max_rows, drafters_.size());
  recorder_.emplace(o, drafters_);
  admission_.emplace(
      engine::AdmissionSettings{.vocabulary = opened_.vocabulary,
                                .dim = opened_.target->info().dim,
                                .context = opened_.context,
                                .end_tokens = opened_.end_tokens,
                                .thinking = opened_.thinking ? &*opened_.thinking : nullptr},
      o, *opened_.tokenizer, *opened_.kernels, *speculation_, drafters_, cache,
      [this](SeqId seq, const engine::Sequence& s) {
        if (s.drafts()) controller().Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
        recorder_->Begin(seq, s, s.completion.controller);
      });
  scheduler_.emplace(
      engine::SchedulerSettings{
          .max_rows = max_rows,
          .max_sequences = o.max_sequences,
          .most_mixed_drafts = o.speculative.num_speculative_tokens_mixed_batch.value_or(kMaxDraft),
          .kv_cache = o.kv_cache,
          .prefix_cache = o.prefix_cache},
      cache, drafters_, estimates_->costs, estimates_->prompt_rows);
  drafting_.emplace(o.max_sequences, drafters_, *estimates_,
                    [this](std::string what) { Notice(what); });
  verification_.emplace(opened_.vocabulary);
  commit_.emplace(engine::CommitSettings{.vocabulary = opened_.vocabulary,
                                         .dim = opened_.target->info().dim,
                                         .max_rows = max_rows,
                                         .max_sequences = o.max_sequences,
                                         .kv_cache = o.kv_cache,
                                         .prefix_cache = o.prefix_cache,
                                         .target_path = path,
                                         .rerank_head = opened_.rerank_head.get()},
                  cache, drafters_, *opened_.kernels);
  accounting_.emplace(*estimates_, cache, drafters_, max_logit_rows, o.prefix_cache);
  step_.emplace(o.max_sequences, max_rows, commit_->MakeCommits());
  // A trace has probabilities of drafts, which are read from whole rows.
  step_->pass.chooses = opened_.target->info().chooses && o.record.empty();
}

}  // namespace foretoken
