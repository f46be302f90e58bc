// SPDX-License-Identifier: Apache-2.0
#include "draft/built_in_drafter.h"

#include <algorithm>

namespace foretoken::draft {

BuiltInDrafter::BuiltInDrafter(std::unique_ptr<draft::Drafter> drafter, BuiltInSettings settings)
    : drafter_(std::move(drafter)),
      settings_(std::move(settings)),
      room_(static_cast<std::size_t>(settings_.max_sequences)) {
  asks_.reserve(room_.size()), to_.reserve(room_.size()), proposals_.reserve(room_.size());
}

void BuiltInDrafter::Begin(const DrafterText& request) {
  if (request.sequence < 0 || request.sequence >= settings_.max_sequences) return;
  SamplingParameters sampling = settings_.sampling.value_or(request.sampling);
  if (sampling.grammar.empty()) sampling.grammar = request.sampling.grammar;
  const bool obeys = settings_.grammar_of && !sampling.grammar.empty();
  auto grammar = obeys ? settings_.grammar_of(sampling) : nullptr;
  drafter_->Begin({.seq = request.sequence,
                   .prompt = request.prompt,
                   .max_new_tokens = request.max_new_tokens,
                   .sampling = sampling,
                   .end_tokens = request.end_tokens,
                   .min_new_tokens = request.min_new_tokens,
                   .draft_p_min = request.draft_p_min,
                   .salt = request.salt,
                   .teaches = request.teaches,
                   .grammar = std::move(grammar)});
  Room(request.sequence) = request.max_new_tokens;
}

void BuiltInDrafter::Propose(int sequence, DraftProposal& proposal) {
  const DrafterTask task = {sequence, &proposal};
  ProposeAll({&task, 1});
}

void BuiltInDrafter::ProposeAll(std::span<const DrafterTask> tasks) {
  asks_.clear(), to_.clear();
  for (const DrafterTask& task : tasks) {
    if (!Runs(task.sequence)) continue;
    asks_.push_back({.seq = task.sequence,
                     .max_tokens = task.proposal->left(),
                     .with_logits = task.proposal->wants_logits(),
                     .proposal = task.proposal});
    to_.push_back(task.proposal);
  }
  if (asks_.empty()) return;
  proposals_.resize(asks_.size());
  drafter_->Propose(asks_, proposals_);
  for (std::size_t i = 0; i < to_.size(); ++i)
    if (const round::Proposal& made = proposals_[i]; made.logits != nullptr)
      to_[i]->ShowLogits({made.logits, made.length(), settings_.vocabulary, made.q_stride});
  if (drafter_->ReportsDistributions()) return;  // the draws were recorded already
  for (std::size_t i = 0; i < to_.size(); ++i)
    for (const Token token : proposals_[i].tokens)
      if (!to_[i]->Push(token)) break;
}

void BuiltInDrafter::Observe(const DrafterRound& round) {
  if (!Runs(round.sequence)) return;
  const auto n = static_cast<int>(round.committed.size());
  if (n > *Room(round.sequence)) return End(round.sequence);
  *Room(round.sequence) -= n;
  const Observation observation = {.seq = round.sequence,
                                   .committed = round.committed,
                                   .drafted = round.drafted,
                                   .accepted = round.accepted};
  drafter_->Observe({&observation, 1});
}

void BuiltInDrafter::End(int sequence) {
  if (!Runs(sequence)) return;
  drafter_->End(sequence);
  Room(sequence).reset();
}

int BuiltInDrafter::Unread(int sequence) const {
  return Runs(sequence) ? drafter_->Missing(sequence) : 0;
}

DrafterWork BuiltInDrafter::TakeWork() {
  const draft::Drafter::Work work = drafter_->TakeWork();
  return {
      .forwards = work.forwards, .read_tokens = work.catch_up_rows, .read_ms = work.catch_up_ms};
}

}  // namespace foretoken::draft
