// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/parts.h"
#include "engine/stats_total.h"

namespace foretoken {
namespace {

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::optional<double> SpeedupEstimate(const SpeculationStats& s) {
  if (s.drafted == 0 || !(s.verify_ms > 0)) return std::nullopt;
  const double a = *s.acceptance_rate();
  const double k = static_cast<double>(s.drafted) / static_cast<double>(s.draft_rounds);
  const double draft = (s.draft_ms - s.draft_prompt_ms) / static_cast<double>(s.drafted);
  const double c = draft / (s.verify_ms / static_cast<double>(s.rounds));
  const double tokens = a < 1 ? (1 - std::pow(a, k + 1)) / (1 - a) : k + 1;
  return tokens / (c * k + 1);
}

}  // namespace

class SpeculativeDecoder::Impl {
 public:
  explicit Impl(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {
    tokens_.reserve(kMaxDraft + 1);
    probabilities_.reserve(kMaxDraft);
  }

  Result<DecodedRound> Begin(Request request, OnRound on_round) {
    if (!done()) return Bad("begin: a request is running; take it to its end or cancel it");
    FORETOKEN_TRY(const Ticket ticket,
                  parts().Begin(std::move(request), Watch(std::move(on_round))));
    ticket_ = ticket;
    completion_.reset();
    ClearRound();
    while (!done() && tokens_.empty()) {
      parts().Step();
      Collect();
    }
    return Round();
  }

  Result<DraftedTokens> Draft() {
    if (done()) return Bad("draft: no request is running; begin one");
    parts().Draft();
    const round::Proposal proposal = parts().ProposalOf(ticket_);
    probabilities_.clear();
    for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
      probabilities_.push_back(proposal.Law(i)[proposal.tokens[static_cast<std::size_t>(i)]]);
    return DraftedTokens{proposal.tokens, probabilities_};
  }

  Result<DecodedRound> Verify() {
    if (done() || !parts().drafted()) return Bad("verify: there are no drafts; call Draft first");
    ClearRound();
    parts().Verify();
    Collect();
    return Round();
  }

  Result<DecodedRound> Verify(std::span<const Token> drafts) {
    FORETOKEN_CHECK_OK(Draft());
    FORETOKEN_CHECK_OK(parts().Replace(ticket_, drafts));
    return Verify();
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
  void ResetStats() { total_.Reset(Running()); }
  const AdaptiveLookahead* adaptive() const { return parts().Adaptive(0); }
  const Engine& engine() const { return *engine_; }

 private:
  EngineParts::Impl& parts() const { return EngineParts::Of(engine_); }

  OnRound Watch(OnRound on_round) {
    return [this, on_round = std::move(on_round)](const RoundEvent& round) {
      for (const TokenEvent& event : round.events) {
        tokens_.push_back(event.id);
        text_ += event.text;
        accepted_ += event.origin == TokenOrigin::kAccepted;
      }
      drafted_ = round.drafted;
      return !on_round || on_round(round);
    };
  }
  void ClearRound() {
    tokens_.clear(), text_.clear();
    drafted_ = accepted_ = 0;
  }
  DecodedRound Round() const { return {tokens_, text_, drafted_, accepted_, done()}; }

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
  Ticket ticket_ = 0;
  std::optional<Completion> completion_;  // once the request has ended
  engine::StatsTotal total_;
  // The round.
  std::vector<Token> tokens_;
  std::vector<float> probabilities_;
  std::string text_;
  int drafted_ = 0, accepted_ = 0;
};

SpeculativeDecoder::SpeculativeDecoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SpeculativeDecoder::~SpeculativeDecoder() = default;

Result<std::unique_ptr<SpeculativeDecoder>> SpeculativeDecoder::Create(EngineOptions options) {
  if (options.max_sequences != 1)
    return Bad(
        fmt::format("sequences: {} are asked for, and a decoder runs one; leave it at 1, or "
                    "use an engine or a pipeline",
                    options.max_sequences));
  FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
  return std::unique_ptr<SpeculativeDecoder>(
      new SpeculativeDecoder(std::make_unique<Impl>(std::move(engine))));
}

Result<DecodedRound> SpeculativeDecoder::Begin(Request request, OnRound on_round) {
  return impl_->Begin(std::move(request), std::move(on_round));
}
Result<DraftedTokens> SpeculativeDecoder::Draft() {
  return impl_->Draft();
}
Result<DecodedRound> SpeculativeDecoder::Verify() {
  return impl_->Verify();
}
Result<DecodedRound> SpeculativeDecoder::Verify(std::span<const std::int32_t> drafts) {
  return impl_->Verify(drafts);
}
Result<DecodedRound> SpeculativeDecoder::Step() {
  FORETOKEN_CHECK_OK(impl_->Draft());
  return impl_->Verify();
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
          .speedup_estimate = SpeedupEstimate(s)};
}

void SpeculativeDecoder::ResetStats() {
  impl_->ResetStats();
}
const AdaptiveLookahead* SpeculativeDecoder::adaptive() const {
  return impl_->adaptive();
}
const Engine& SpeculativeDecoder::engine() const {
  return impl_->engine();
}

}  // namespace foretoken
