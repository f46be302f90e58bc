// SPDX-License-Identifier: Apache-2.0
#include "engine/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/argument_checks.h"
#include "draft/networks/draft_model.h"
#include "engine/requests/admission.h"
#include "foretoken/drafts.h"
#include "kv/transaction.h"
#include "sampling/logprobs.h"

namespace foretoken {

Result<engine::DraftWants> EngineParts::WantsOf(const DraftOptions& options) {
  if (const int k = options.num_steps.value_or(0); k < 0 || k > kMaxDraft)
    return InvalidField("num_steps", fmt::format("{} is out of range; use 0 to {}", k, kMaxDraft));
  return engine::DraftWants{options.num_steps, options.logits};
}

// The request's index in the plan, if it is part of the pass.
std::optional<std::size_t> Engine::Impl::EntryOf(Ticket ticket) const noexcept {
  const engine::Sequence* const s = SequenceOf(ticket);
  if (s == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < step_->plan.size(); ++i)
    if (step_->plan.entries[i].seq == s->job->seq) return i;
  return std::nullopt;
}

Status Engine::Impl::Replace(Ticket ticket, std::span<const Token> drafts) {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  const auto at = EntryOf(ticket);
  const auto decodes = [&] {
    const engine::PlannedSequence& planned = step_->plan.entries[*at];
    return planned.decodes && !planned.prefill;
  };
  if (!step_->drafted || !at || !decodes())
    return bad("drafts: the request does not decode in this step; call Draft first");
  engine::Sequence& s = admission_->sequences().At(step_->plan.entries[*at].seq);
  const int most = std::min(kMaxDraft, s.emitter.tokens_left() - 1);
  if (static_cast<int>(drafts.size()) > most)
    return bad(fmt::format("drafts: {} are given, and this request takes {} at most; give fewer",
                           drafts.size(), most));
  FORETOKEN_CHECK_OK(CheckTokens("drafts", drafts, opened_.vocabulary));
  if (s.verifier->NeedsLogits())
    return bad(
        fmt::format("drafts: '{}' compares a drafter's logits, and given drafts have none; "
                    "use another strategy",
                    s.verifier->name()));
  engine::DraftedSequence& drafted = step_->drafts.entries[*at];
  const round::Proposal made = std::exchange(drafted.proposal, {.tokens = drafts});
  if (!scheduler_->Fits(step_->plan, step_->drafts)) {
    drafted.proposal = made;
    return Fail(ErrorCode::kTooLarge,
                fmt::format("drafts: the cache has no blocks left for {}; give fewer or raise "
                            "EngineOptions::cache_tokens",
                            drafts.size()));
  }
  drafted.given = true;
  s.completion.lossless = s.verifier->Lossless() && !s.thinking.relaxes();
  engine::MakeRoomForCounts(s.completion.speculation, drafts.size());
  return {};
}

std::span<const Token> Engine::Impl::FeedOf(Ticket ticket) const noexcept {
  const auto at = EntryOf(ticket);
  if (!at) return {};
  const engine::PlannedSequence& planned = step_->plan.entries[*at];
  return SequenceOf(ticket)->sampler.text().subspan(
      static_cast<std::size_t>(opened_.cache->length(planned.seq)),
      static_cast<std::size_t>(planned.n_feed));
}

std::span<const Token> Engine::Impl::DraftFeedOf(Ticket ticket) const noexcept {
  const auto at = EntryOf(ticket);
  if (!at) return {};
  const engine::PlannedSequence& planned = step_->plan.entries[*at];
  const int most = step_->drafted ? step_->drafts.entries[*at].asked : planned.max_draft;
  if (!planned.may_draft || most == 0) return {};
  const engine::Sequence& s = *SequenceOf(ticket);
  for (const int d : s.drafters) {
    const auto* const model = dynamic_cast<const draft::DraftModel*>(drafters_[d].drafter.get());
    if (model == nullptr) continue;
    const auto text = s.sampler.text();
    return text.last(std::min(text.size(), static_cast<std::size_t>(model->unread(planned.seq))));
  }
  return {};
}

round::Proposal Engine::Impl::ProposalOf(Ticket ticket) const noexcept {
  const auto at = EntryOf(ticket);
  return at && step_->drafted ? step_->drafts.entries[*at].proposal : round::Proposal();
}

TokenRows Engine::Impl::RowsOf(const round::Proposal& proposal,
                               const float* numbers) const noexcept {
  if (numbers == nullptr || proposal.length() == 0) return {};
  return {numbers, proposal.length(), opened_.vocabulary, proposal.q_stride};
}

TokenRows Engine::Impl::TargetRowsOf(Ticket ticket) const noexcept {
  const auto at = EntryOf(ticket);
  if (!at || !step_->plan.entries[*at].decodes) return {};
  const model::PassResult& result = *step_->result;
  return {result.Logits(step_->pass.entries[*at].first_logit),
          step_->drafts.entries[*at].length() + 1, opened_.vocabulary, result.logits_stride};
}

// Puts the next rows of the feeds into the pass and returns their number. row_of: feed and token of
// each row.
std::size_t Engine::Impl::FillPass(std::span<const Feed> feeds, std::vector<std::size_t>& done,
                                   std::vector<std::pair<std::size_t, int>>& row_of) {
  const model::RunnerInfo& info = opened_.target->info();
  const int most = std::min(info.max_rows, info.max_logit_rows);
  engine::FlatPass& pass = step_->pass;
  pass.Clear(), step_->verdicts.kept.clear(), row_of.clear();
  for (std::size_t f = 0; f < feeds.size(); ++f) {
    const int first = pass.n_rows();
    const int left = static_cast<int>(feeds[f].tokens.size() - done[f]);
    const int n = std::min(left, most - first);
    if (n <= 0) continue;
    const auto tokens = feeds[f].tokens.subspan(done[f], static_cast<std::size_t>(n));
    pass.Add(feeds[f].seq, opened_.cache->length(feeds[f].seq), tokens.first(1), tokens.subspan(1));
    step_->verdicts.kept.push_back(n);
    for (int i = 0; i < n; ++i) {
      pass.logit_rows.push_back(first + i);
      row_of.emplace_back(f, static_cast<int>(done[f]) + i);
    }
    done[f] += static_cast<std::size_t>(n);
  }
  return row_of.size();
}

Status Engine::Impl::ReadRows(std::span<const Feed> feeds, const OnRow& on_row) {
  std::vector<std::size_t> done(feeds.size());
  std::vector<std::pair<std::size_t, int>> row_of;
  while (FillPass(feeds, done, row_of) > 0) {
    kv::Transaction transaction(*opened_.cache, step_->pass.segments);
    const model::PassResult& result = opened_.target->Run(step_->pass.View());
    if (!CanGoOn()) return WhyNot();
    transaction.Commit(step_->verdicts.kept);
    for (std::size_t row = 0; row < row_of.size(); ++row) {
      const auto [f, token] = row_of[row];
      if (!result.Finite(static_cast<int>(row))) {
        const int before = CachedPositions(feeds[f].seq) - static_cast<int>(done[f]);
        return Fail(commit_->NotFinite(before + token + 1));
      }
      on_row(f, token, result.Logits(static_cast<int>(row)),
             result.Features(static_cast<int>(row)));
    }
  }
  return {};
}

Result<std::vector<float>> Engine::Impl::Score(std::span<const Token> tokens) {
  if (static_cast<int>(tokens.size()) > opened_.MostPositions())
    return Fail(ErrorCode::kTooLarge, fmt::format("score: {} tokens do not fit a context of {}",
                                                  tokens.size(), opened_.MostPositions()));
  for (const Token id : tokens)
    if (id < 0 || id >= opened_.vocabulary)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("score: token {} is not in the vocabulary of {}", id, opened_.vocabulary));
  if (!admission_->sequences().none())
    return Fail(ErrorCode::kInvalidArgument,
                "score: requests are running; take their results first");
  std::vector<float> logprobs;
  if (tokens.empty()) return logprobs;
  sampling::LogprobReader reader(opened_.vocabulary, *opened_.kernels);
  const Feed feed{0, tokens.first(tokens.size() - 1)};
  logprobs.reserve(tokens.size());
  const Status read = CatchNoMemory("score", [&] {
    return ReadRows({&feed, 1}, [&](std::size_t, int i, const float* logits, const float*) {
      logprobs.push_back(reader.Of(logits, tokens[static_cast<std::size_t>(i) + 1]));
    });
  });
  TruncateCache(0, 0);
  if (!read) return Fail(read.error());
  return logprobs;
}

}  // namespace foretoken
