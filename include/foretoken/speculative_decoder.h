// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_decoder.h: one request, round by round: draft, look at the drafts, verify.
//
//   auto decoder = foretoken::SpeculativeDecoder::Create({.model = "target.gguf",
//                                                         .draft_model = "draft.gguf"});
//   auto first = (*decoder)->Begin(request);       // prefills
//   while (!(*decoder)->done()) {
//     auto drafts = (*decoder)->Draft();
//     auto round = (*decoder)->Verify();           // or Verify(your own drafts)
//   }
//
// Uses an Engine: the text is the one that Engine::Generate gives. One thread at a time.
//
// Between requests it also drafts for your own texts and verifies drafts on your own logits, without
// a pass of the target, with the decoder's own strategy, noise, statistics and draft-length controller:
//
//   const auto drafted = decoder.Draft(text);  // then run your target over text and drafts
//   const auto verified = decoder.Verify(drafted->tokens, {logits, n});  // [drafts + 1, n]
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/drafts.h"
#include "foretoken/engine.h"
#include "foretoken/verification.h"

namespace foretoken {

// The result of a round. Views are valid until the next call.
struct DecodedRound {
  std::span<const std::int32_t> tokens;  // committed
  std::string text;                      // whole characters that may be shown now
  int drafted = 0, accepted = 0;
  bool done = false;
  // The last of the tokens, by its origin: in place of a rejected draft, or behind drafts that were
  // all accepted. Neither for a plain token, and if the text ended before it.
  std::optional<std::int32_t> recovered_token, bonus_token;
  std::span<const TokenLogprobs> logprobs;  // [tokens], if Request.logprobs asks for them
  // [drafted + 1, vocabulary]: the target's unprocessed logits. Row i verified draft i; the last
  // one follows all drafts. Nothing is copied.
  TokenRows target_logits;
};

// How tokens are drawn when the caller gives the text or the logits.
struct GivenSampling {
  SamplingParameters sampling = {};
  std::uint64_t seed = 0, request_id = 0;
  // How many of the last tokens of a context are output: frequency and presence penalties count
  // those.
  int n_generated = 0;
  // Only for Draft and Step, and only for heads (EAGLE, MTP, DFlash): the target's hidden states at
  // the n positions before the last token of the context, [n, EngineSummary.hidden_states.width].
  // EAGLE and MTP heads may be given fewer than context - 1; the text then begins there for them.
  // They read all that is given each time.
  std::span<const float> hidden_states = {};
};

// The result of a step on the caller's logits.
struct VerifiedStep {
  std::span<const std::int32_t> drafts;  // a view that is valid until the next call
  VerifiedDrafts verified;
  std::optional<double> acceptance_rate;  // of this step: accepted / drafted
};

// The counters of stats() in the names of another library's decoder, since the start or the last reset.
// A rate without a denominator is absent.
struct DecoderStatistics {
  std::int64_t total_steps = 0;  // rounds
  std::int64_t total_draft_tokens = 0;
  std::int64_t total_accepted_tokens = 0;
  std::optional<double> acceptance_rate;  // a: accepted / drafted
  // (1 - a^(K+1)) / ((1 - a) (c K + 1)), where K is the mean draft length and c the measured cost
  // of a draft in target passes; 0 as long as all target passes were the caller's own, which have no
  // time here. An estimate: it assumes that a pass over K + 1 rows costs as much as one over a single
  // row.
  std::optional<double> speedup_estimate;
};

class SpeculativeDecoder {
 public:
  // Errors: as Engine::Open; kInvalidArgument if max_sequences is not 1.
  [[nodiscard]] static Result<std::unique_ptr<SpeculativeDecoder>> Create(EngineOptions options);
  ~SpeculativeDecoder();

  // Prefills the prompt and commits the target's first token, if the request wants any. Errors: as
  // Engine::Begin; kInvalidArgument while a request runs.
  [[nodiscard]] Result<DecodedRound> Begin(Request request, OnRound on_round = {});

  // The drafts of the next round, valid until the next call. Until they are verified, further calls
  // give the same drafts, with what the first call asked for. Errors: kInvalidArgument (nothing runs, num_steps out of range).
  [[nodiscard]] Result<DraftsView> Draft(const DraftOptions& options = {});
  // Verifies them. Errors: kInvalidArgument (no drafts were made).
  [[nodiscard]] Result<DecodedRound> Verify();
  // Verifies the caller's drafts instead, as certain drafts. If the drafter has not drafted yet, it
  // drafts first. The caller's drafts must not depend on what the target is about to draw. Errors:
  // kInvalidArgument (unknown tokens, more than may be committed, a strategy that compares logits);
  // nothing has happened then.
  [[nodiscard]] Result<DecodedRound> Verify(std::span<const std::int32_t> drafts);
  // Draft and Verify.
  [[nodiscard]] Result<DecodedRound> Step();

  // While no request runs: drafts behind the caller's text, as many as the draft-length controller
  // wants, which may be none. The drafter reads only what its cache lacks: the context shares its
  // beginning, and accepted drafts, with the context before. Errors: kInvalidArgument (a request
  // runs, an unknown token, a drafter that needs more than is given), kTooLarge (beyond the context).
  [[nodiscard]] Result<DraftsView> Draft(std::span<const std::int32_t> context,
                                         const GivenSampling& given = {},
                                         const DraftOptions& options = {});
  // While no request runs: verifies drafts on the caller's logits, [drafts + 1, vocabulary].
  //
  // After Draft(context) they stand behind that context, once. The drafts that it returned, or the
  // first of them, have the distributions that they were drawn from, and the controller learns from
  // them; other drafts are certain. Without `given` tokens are drawn as the drafts were.
  //
  // Otherwise drafts are certain, and stand behind the last token that was verified so, or at
  // position 0 after ResetStats; so no noise is used twice. Their text is not known: penalties and
  // logits processors are an error. Errors: kInvalidArgument.
  [[nodiscard]] Result<VerifiedDrafts> Verify(std::span<const std::int32_t> drafts,
                                              const TokenRows& target_logits);
  [[nodiscard]] Result<VerifiedDrafts> Verify(std::span<const std::int32_t> drafts,
                                              const TokenRows& target_logits,
                                              const GivenSampling& given);
  // Draft(context), at most target_logits.rows - 1 tokens, and Verify. Row i of the logits is the
  // target's for the i-th token behind the context. Errors: as both.
  [[nodiscard]] Result<VerifiedStep> Step(std::span<const std::int32_t> context,
                                          const TokenRows& target_logits,
                                          const GivenSampling& given = {});

  // Runs a whole request. Errors: as Begin.
  [[nodiscard]] Result<Completion> Generate(Request request, const OnRound& on_round = {});
  // Ends the running request; its finish reason is "cancelled".
  void Cancel();

  bool done() const;  // nothing runs
  // The running or the last request so far. Its finish reason is valid once it is done.
  Completion completion() const;

  SpeculationStats stats() const;  // all counters
  DecoderStatistics statistics() const;
  // The two rates, always as numbers: 0 before the first draft, and 1, no speed-up, before the
  // first round that drafted.
  double acceptance_rate() const { return statistics().acceptance_rate.value_or(0); }
  double speedup_estimate() const { return statistics().speedup_estimate.value_or(1); }
  // Sets all counters to 0; the draft-length controller forgets what it learned.
  void ResetStats();
  // The controller of draft lengths if SpeculativeOptions.controller is "ewma"; else null. It lives
  // as long as the decoder; each request begins with it reset, in its present configuration. The
  // caller may reset it, change its configuration or report rounds to it. A request's
  // num_speculative_tokens stays the upper bound.
  const AdaptiveLookahead* adaptive_lookahead() const;
  AdaptiveLookahead* adaptive_lookahead();

  const Engine& engine() const;  // for Tokenize, Detokenize, FormatChat, summary

 private:
  class Impl;
  explicit SpeculativeDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
