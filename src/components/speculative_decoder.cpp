// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "components/given_text.h"
#include "engine/parts.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "round/count_drafts.h"
#include "round/stats_total.h"

namespace foretoken {
namespace {

// given: what of it was verified on the caller's logits, without a clock.
std::optional<double> SpeedupEstimate(const SpeculationStats& s, const SpeculationStats& given) {
  if (s.drafted == 0) return std::nullopt;
  const double a = *s.acceptance_rate();
  const double k = static_cast<double>(s.drafted) / static_cast<double>(s.draft_rounds);
  const auto drafted = static_cast<double>(s.drafted - given.drafted),
             rounds = static_cast<double>(s.rounds - given.rounds);
  const double draft = drafted > 0 ? (s.draft_ms - s.draft_prompt_ms) / drafted : 0;
  const double c = s.verify_ms > 0 ? draft / (s.verify_ms / rounds) : 0;
  const double tokens = a < 1 ? (1 - std::pow(a, k + 1)) / (1 - a) : k + 1;
  return tokens / (c * k + 1);
}

}  // namespace

class SpeculativeDecoder::Impl {
 public:
  explicit Impl(std::unique_ptr<Engine> engine) : engine_(std::move(engine)), given_text_(parts()) {
    round_tokens_.reserve(kMaxDraft + 1);
    probabilities_.reserve(kMaxDraft);
    parts().KeepRowsWhole();
  }

  Result<DecodedRound> Begin(Request request, OnRound on_round) {
    if (!done())
      return InvalidArgument("begin: a request is running; take it to its end or cancel it");
    FORETOKEN_TRY(const Ticket ticket,
                  parts().Begin(std::move(request), Watch(std::move(on_round))));
    given_text_.Leave();
    ticket_ = ticket;
    completion_.reset();
    ClearRound();
    while (!done() && round_tokens_.empty()) {
      parts().Step();
      Collect();
    }
    return Round();
  }

  Result<DraftsView> Draft(const DraftOptions& options) {
    if (done()) return InvalidArgument("draft: no request is running; begin one");
    FORETOKEN_TRY(const auto wants, EngineParts::WantsOf(options));
    parts().Draft(wants);
    return Drafted(parts().ProposalOf(ticket_), options);
  }

  Result<DecodedRound> Verify() {
    if (done() || !parts().drafted())
      return InvalidArgument("verify: there are no drafts; call Draft first");
    ClearRound();
    parts().Verify();
    Collect();
    return Round();
  }

  Result<DecodedRound> Verify(std::span<const Token> drafts) {
    FORETOKEN_CHECK_OK(Draft(DraftOptions()));
    FORETOKEN_CHECK_OK(parts().Replace(ticket_, drafts));
    return Verify();
  }

  Result<DraftsView> Draft(std::span<const Token> context, const GivenSampling& given,
                           const DraftOptions& options, int most = kMaxDraft) {
    if (!done())
      return InvalidArgument("draft: a request is running; take it to its end or cancel it");
    FORETOKEN_TRY(const auto wants, EngineParts::WantsOf(options));
    FORETOKEN_TRY(const round::Proposal proposal,
                  given_text_.DraftAfter(context, given, wants, most));
    SpeculationStats drafting;
    drafting.draft_forwards = given_text_.TakeForwards();
    total_.Add(drafting);
    return Drafted(proposal, options);
  }

  // given: null: that of Draft.
  Result<VerifiedDrafts> Verify(std::span<const Token> drafts, const TokenRows& target_logits,
                                const GivenSampling* given) {
    if (!done())
      return InvalidArgument("verify: a request is running; take it to its end or cancel it");
    FORETOKEN_TRY(const VerifiedDrafts verified, given_text_.Verify(drafts, target_logits, given));
    CountGiven(drafts.size(), verified);
    return verified;
  }

  Result<VerifiedStep> Step(std::span<const Token> context, const TokenRows& target_logits,
                            const GivenSampling& given) {
    if (target_logits.rows < 1)
      return InvalidArgument(
          "target logits: there are none; give a row for each draft and one more");
    FORETOKEN_TRY(const DraftsView drafted, Draft(context, given, {}, target_logits.rows - 1));
    TokenRows rows = target_logits;
    rows.rows = static_cast<int>(drafted.tokens.size()) + 1;
    FORETOKEN_TRY(const VerifiedDrafts verified, Verify(drafted.tokens, rows, &given));
    VerifiedStep step{.drafts = drafted.tokens, .verified = verified, .acceptance_rate = {}};
    if (!drafted.tokens.empty())
      step.acceptance_rate =
          static_cast<double>(verified.accepted) / static_cast<double>(drafted.tokens.size());
    return step;
  }

  void Cancel() {
    parts().End(ticket_);
    Collect();
  }

  bool done() const { return ticket_ == 0 || completion_.has_value(); }
  Completion completion() const {
    if (completion_) return *completion_;
    const engine::Sequence* const s = parts().SequenceOf(ticket_);
    if (s == nullptr) return {};
    Completion so_far = s->completion;
    so_far.text = s->emitter.text();
    return so_far;
  }

  SpeculationStats stats() const { return total_.Read(Running()); }
  std::optional<double> speedup_estimate() const { return SpeedupEstimate(stats(), given_); }
  void ResetStats() {
    total_.Reset(Running());
    given_ = {};
    given_text_.Reset();
  }
  AdaptiveLookahead* adaptive_lookahead() const { return parts().Adaptive(0); }
  const Engine& engine() const { return *engine_; }

 private:
  EngineParts::Impl& parts() const { return EngineParts::Of(engine_); }

  DraftsView Drafted(const round::Proposal& proposal, const DraftOptions& options) {
    probabilities_.clear();
    for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
      probabilities_.push_back(
          proposal.Distribution(i)[proposal.tokens[static_cast<std::size_t>(i)]]);
    return {.tokens = proposal.tokens,
            .probabilities = probabilities_,
            .distributions = parts().RowsOf(proposal, options.distributions ? proposal.q : nullptr),
            .logits = parts().RowsOf(proposal, options.logits ? proposal.logits : nullptr)};
  }

  void CountGiven(std::size_t n, const VerifiedDrafts& verified) {
    SpeculationStats round;
    round.recovered = verified.origin == TokenOrigin::kRecovered;
    round.bonus = verified.origin == TokenOrigin::kBonus;
    round.plain = verified.origin == TokenOrigin::kPlain;
    round.emitted = verified.accepted + 1;
    for (auto* const list :
         {&round.drafted_per_position, &round.verified_per_position, &round.accepted_per_position})
      list->resize(n);
    round.k_histogram.resize(n + 1);
    const int drafted = static_cast<int>(n);
    round::CountDrafts(drafted, verified.accepted, std::min(drafted, verified.accepted + 1), round);
    total_.Add(round);
    given_.Add(round);
  }

  OnRound Watch(OnRound on_round) {
    return [this, on_round = std::move(on_round)](const RoundEvent& round) {
      for (const TokenEvent& event : round.events) {
        round_tokens_.push_back(event.id);
        round_.text += event.text;
        round_.accepted += event.origin == TokenOrigin::kAccepted;
        if (event.origin == TokenOrigin::kRecovered) round_.recovered_token = event.id;
        if (event.origin == TokenOrigin::kBonus) round_.bonus_token = event.id;
      }
      // They lie one behind the other in the completion, which keeps their place.
      if (!round.events.empty() && round.events.front().logprobs != nullptr)
        round_.logprobs = {round.events.front().logprobs, round.events.size()};
      round_.drafted = round.drafted;
      round_.target_logits = parts().TargetRowsOf(ticket_);
      return !on_round || on_round(round);
    };
  }
  void ClearRound() {
    round_tokens_.clear();
    round_ = {};
  }
  Result<DecodedRound> Round() {
    if (completion_ && completion_->error) return Fail(*completion_->error);
    round_.tokens = round_tokens_;
    round_.done = done();
    return round_;
  }

  void Collect() {
    if (done()) return;
    completion_ = parts().Take(ticket_);
    if (completion_) total_.Add(completion_->speculation);
  }
  SpeculationStats Running() const {
    const engine::Sequence* const s = done() ? nullptr : parts().SequenceOf(ticket_);
    return s == nullptr ? SpeculationStats() : s->completion.speculation;
  }

  std::unique_ptr<Engine> engine_;
  GivenText given_text_;
  Ticket ticket_ = 0;
  std::optional<Completion> completion_;  // once the request has ended
  round::StatsTotal total_;
  SpeculationStats given_;  // of it, the rounds on the caller's logits
  // The round.
  std::vector<Token> round_tokens_;
  std::vector<float> probabilities_;
  DecodedRound round_;
};

SpeculativeDecoder::SpeculativeDecoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SpeculativeDecoder::~SpeculativeDecoder() = default;

Result<std::unique_ptr<SpeculativeDecoder>> SpeculativeDecoder::Create(EngineOptions options) {
  if (options.max_sequences != 1)
    return InvalidArgument(
        fmt::format("sequences: {} are asked for, and a decoder runs one; leave it at 1, or "
                    "use an engine or a pipeline",
                    options.max_sequences));
  FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
  return std::unique_ptr<SpeculativeDecoder>(
      new SpeculativeDecoder(std::make_unique<Impl>(std::move(engine))));
}

Result<DecodedRound> SpeculativeDecoder::Begin(Request request, OnRound on_round) {
  return CatchNoMemory("decoder",
                       [&] { return impl_->Begin(std::move(request), std::move(on_round)); });
}
Result<DraftsView> SpeculativeDecoder::Draft(const DraftOptions& options) {
  return CatchNoMemory("decoder", [&] { return impl_->Draft(options); });
}
Result<DraftsView> SpeculativeDecoder::Draft(std::span<const std::int32_t> context,
                                             const GivenSampling& given,
                                             const DraftOptions& options) {
  return CatchNoMemory("decoder", [&] { return impl_->Draft(context, given, options); });
}
Result<DecodedRound> SpeculativeDecoder::Verify() {
  return CatchNoMemory("decoder", [&] { return impl_->Verify(); });
}
Result<DecodedRound> SpeculativeDecoder::Verify(std::span<const std::int32_t> drafts) {
  return CatchNoMemory("decoder", [&] { return impl_->Verify(drafts); });
}
Result<VerifiedDrafts> SpeculativeDecoder::Verify(std::span<const std::int32_t> drafts,
                                                  const TokenRows& target_logits) {
  return CatchNoMemory("decoder", [&] { return impl_->Verify(drafts, target_logits, nullptr); });
}
Result<VerifiedDrafts> SpeculativeDecoder::Verify(std::span<const std::int32_t> drafts,
                                                  const TokenRows& target_logits,
                                                  const GivenSampling& given) {
  return CatchNoMemory("decoder", [&] { return impl_->Verify(drafts, target_logits, &given); });
}
Result<DecodedRound> SpeculativeDecoder::Step() {
  FORETOKEN_CHECK_OK(Draft(DraftOptions()));
  return Verify();
}
Result<VerifiedStep> SpeculativeDecoder::Step(std::span<const std::int32_t> context,
                                              const TokenRows& target_logits,
                                              const GivenSampling& given) {
  return CatchNoMemory("decoder", [&] { return impl_->Step(context, target_logits, given); });
}

Result<Completion> SpeculativeDecoder::Generate(Request request, const OnRound& on_round) {
  FORETOKEN_CHECK_OK(Begin(std::move(request), on_round));
  while (!done()) FORETOKEN_CHECK_OK(Step());
  return completion();
}

void SpeculativeDecoder::Cancel() {
  impl_->Cancel();
}
bool SpeculativeDecoder::done() const {
  return impl_->done();
}
Completion SpeculativeDecoder::completion() const {
  return impl_->completion();
}
SpeculationStats SpeculativeDecoder::stats() const {
  return impl_->stats();
}

DecoderStatistics SpeculativeDecoder::statistics() const {
  const SpeculationStats s = stats();
  return {.total_steps = s.rounds,
          .total_draft_tokens = s.drafted,
          .total_accepted_tokens = s.accepted,
          .acceptance_rate = s.acceptance_rate(),
          .speedup_estimate = impl_->speedup_estimate()};
}

void SpeculativeDecoder::ResetStats() {
  impl_->ResetStats();
}
const AdaptiveLookahead* SpeculativeDecoder::adaptive_lookahead() const {
  return impl_->adaptive_lookahead();
}
AdaptiveLookahead* SpeculativeDecoder::adaptive_lookahead() {
  return impl_->adaptive_lookahead();
}
const Engine& SpeculativeDecoder::engine() const {
  return impl_->engine();
}

}  // namespace foretoken
