// SPDX-License-Identifier: Apache-2.0
#include "engine/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "draft/draft_model.h"
#include "kv/transaction.h"

namespace foretoken {

Result<Engine::Impl::DraftWants> EngineParts::WantsOf(const DraftOptions& options) {
  if (const int k = options.num_steps.value_or(0); k < 0 || k > kMaxDraft)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("num_steps: {} is out of range; use 0 to {}", k, kMaxDraft));
  return Impl::DraftWants{options.num_steps, options.logits};
}

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
  if (work == nullptr || !work->may_draft || work->max_draft == 0) return {};
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

TokenRows Engine::Impl::RowsOf(const round::Proposal& proposal,
                               const float* numbers) const noexcept {
  if (numbers == nullptr || proposal.length() == 0) return {};
  return {numbers, proposal.length(), vocabulary_, proposal.q_stride};
}

TokenRows Engine::Impl::TargetRowsOf(Ticket ticket) const noexcept {
  const Work* const work = WorkOf(ticket);
  if (work == nullptr || !work->decodes) return {};
  return {LogitsOf(*work, 0), work->proposal.length() + 1, vocabulary_, result_->logits_stride};
}

Result<round::Proposal> Engine::Impl::DraftAfter(const GivenText& given, const DraftWants& wants) {
  Request request;
  request.prompt_tokens.assign(given.text.begin(), given.text.end());
  request.sampling = given.sampling;
  request.max_new_tokens = 0;
  FORETOKEN_CHECK_OK(Check(request, given.text));
  FORETOKEN_TRY(const auto grammar, grammars_->Of(given.sampling));
  const auto drafts_alone = [this](int d) {
    const DrafterEntry& entry = drafters_[static_cast<std::size_t>(d)];
    return !entry.reads_features() && entry.method != "prediction";
  };
  const auto found = std::find_if(default_drafters_.begin(), default_drafters_.end(), drafts_alone);
  if (found == default_drafters_.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("drafts: '{}' does not draft from a text alone; open the decoder with "
                            "standalone, ngram, suffix or a drafter of your own",
                            summary_.method));
  draft::Drafter& drafter = *drafters_[static_cast<std::size_t>(*found)].drafter;
  const bool shares = VerifierFor(request).SharesNoise();
  drafter.Begin({.seq = 0,
                 .prompt = given.text,
                 .max_new_tokens = context_size_ - static_cast<int>(given.text.size()),
                 .sampling = given.sampling,
                 .end_tokens = end_tokens_,
                 .noise = given.noise,
                 .stream = shares ? Stream::kTarget : Stream::kDraft,
                 .draft_p_min = options_.speculative.draft_p_min,
                 .prediction = {},
                 .grammar = grammar});
  const draft::Ask ask{0, wants.length.value_or(0), wants.logits};
  round::Proposal proposal;
  int before = 0;
  do {  // a long text is read in parts
    before = drafter.Missing(0);
    drafter.Propose({&ask, 1}, {&proposal, 1});
  } while (ask.max_tokens > 0 && proposal.length() == 0 && drafter.Missing(0) < before);
  drafter.TakeWork();
  drafter.End(0);
  return proposal;
}

// The cost model learns from passes alone, and there are none.
void Engine::Impl::ObserveGiven(int drafted, int accepted) noexcept {
  if (options_.speculative.lookahead != "cost-model")
    lookahead_->Observe(0, {.drafted = drafted, .accepted = accepted});
}

VerificationOptions Engine::Impl::VerificationFor(const SamplingParameters& sampling) const {
  VerificationOptions options{.vocabulary_size = vocabulary_,
                              .speculative = options_.speculative,
                              .sampling = sampling,
                              .verifier = options_.verifier,
                              .isa = options_.isa};
  Request request;
  request.sampling = sampling;
  const verify::Verifier& rule = VerifierFor(request);
  for (std::size_t i = 1; i < verify::Rules::kCount; ++i)
    if (&rule == &VerifierOf(static_cast<VerifyStrategy>(i)))
      options.speculative.strategy = static_cast<VerifyStrategy>(i);
  return options;
}

Status Engine::Impl::ReadRows(std::span<const Feed> feeds, const OnRow& on_row) {
  const int most = std::min(target_->info().max_rows, target_->info().max_logit_rows);
  std::vector<std::size_t> done(feeds.size());
  for (;;) {
    tokens_.clear(), segments_.clear(), logit_rows_.clear(), kept_.clear();
    std::vector<std::pair<std::size_t, int>> row_of;  // feed and token of each row
    for (std::size_t f = 0; f < feeds.size(); ++f) {
      const int first = static_cast<int>(tokens_.size());
      const int left = static_cast<int>(feeds[f].tokens.size() - done[f]);
      const int n = std::min(left, most - first);
      if (n <= 0) continue;
      const auto part = feeds[f].tokens.subspan(done[f], static_cast<std::size_t>(n));
      tokens_.insert(tokens_.end(), part.begin(), part.end());
      segments_.push_back({feeds[f].seq, first, n, cache_->length(feeds[f].seq)});
      kept_.push_back(n);
      for (int i = 0; i < n; ++i) {
        logit_rows_.push_back(first + i);
        row_of.emplace_back(f, static_cast<int>(done[f]) + i);
      }
      done[f] += static_cast<std::size_t>(n);
    }
    if (tokens_.empty()) return {};
    kv::Transaction transaction(*cache_, segments_);
    result_ = &target_->Run({.tokens = tokens_, .segments = segments_, .logit_rows = logit_rows_});
    FORETOKEN_CHECK_OK(CheckFiles());
    transaction.Commit(kept_);
    for (std::size_t row = 0; row < row_of.size(); ++row) {
      if (!result_->Finite(static_cast<int>(row))) {
        const auto [f, token] = row_of[row];
        const int before = cache_->length(feeds[f].seq) - static_cast<int>(done[f]);
        return Fail(NotFinite(before + token + 1));
      }
      on_row(row_of[row].first, row_of[row].second, result_->Logits(static_cast<int>(row)));
    }
  }
}

void Engine::Impl::End(Ticket ticket) noexcept {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || found->second->completion) return;
  engine::Job& job = *found->second;
  if (job.seq >= 0) {
    std::erase_if(work_, [&](const Work& work) { return work.seq == job.seq; });
    drafted_ = drafted_ && !work_.empty();
    Finish(job, FinishReason::kCancelled);
    PublishRecord();
    return;
  }
  std::erase(waiting_, &job);
  Completion& completion = job.completion.emplace();
  completion.finish_reason = job.error ? FinishReason::kError : FinishReason::kCancelled;
  completion.error = std::move(job.error);
  completion.prompt_token_ids = std::move(job.prompt);
  completion.seed = job.request.seed;
}

}  // namespace foretoken
