// SPDX-License-Identifier: Apache-2.0
#include "engine/parts.h"

#include <algorithm>

#include "draft/draft_model.h"

namespace foretoken {

void Engine::Impl::Plan() noexcept {
  if (drafted_) return;
  AdmitWaiting();
  PlanWork();
}

const Engine::Impl::Work* Engine::Impl::WorkOf(Ticket ticket) const noexcept {
  const engine::Job* const job = JobOf(ticket);
  if (job == nullptr || job->seq < 0) return nullptr;
  for (const Work& work : work_)
    if (work.seq == job->seq) return &work;
  return nullptr;
}

std::span<const Token> Engine::Impl::FeedOf(Ticket ticket) const noexcept {
  const Work* const work = WorkOf(ticket);
  if (work == nullptr) return {};
  return SequenceOf(ticket)->sampler.text().subspan(
      static_cast<std::size_t>(cache_->length(work->seq)), static_cast<std::size_t>(work->n_feed));
}

std::span<const Token> Engine::Impl::DraftFeedOf(Ticket ticket) const noexcept {
  const Work* const work = WorkOf(ticket);
  if (work == nullptr || work->prefill || work->max_draft == 0) return {};
  const engine::Sequence& s = *SequenceOf(ticket);
  for (const int d : s.drafters) {
    const auto* const model = dynamic_cast<const draft::DraftModel*>(
        drafters_[static_cast<std::size_t>(d)].drafter.get());
    if (model == nullptr) continue;
    const auto text = s.sampler.text();
    return text.subspan(std::min(text.size(), static_cast<std::size_t>(model->cached(work->seq))));
  }
  return {};
}

round::Proposal Engine::Impl::ProposalOf(Ticket ticket) const noexcept {
  const Work* const work = WorkOf(ticket);
  return work == nullptr || !drafted_ ? round::Proposal() : work->proposal;
}

void Engine::Impl::End(Ticket ticket) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || found->second->completion) return;
  engine::Job& job = *found->second;
  if (job.seq >= 0) {
    std::erase_if(work_, [&](const Work& work) { return work.seq == job.seq; });
    drafted_ = drafted_ && !work_.empty();
    Finish(job.seq, FinishReason::kCancelled);
    PublishRecord();
    return;
  }
  std::erase(waiting_, &job);
  Completion& completion = job.completion.emplace();
  completion.finish_reason = FinishReason::kCancelled;
  completion.prompt_token_ids = job.prompt;
  completion.seed = job.request.seed;
}

}  // namespace foretoken
