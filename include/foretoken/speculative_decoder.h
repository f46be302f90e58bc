// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_decoder.h: one request, round by round: draft, look at the drafts, verify.
//
//   auto decoder = foretoken::SpeculativeDecoder::Create({.model = "target.gguf",
//                                                         .draft_model = "draft.gguf"});
//   auto first = (*decoder)->Begin(request);       // reads the prompt
//   while (!(*decoder)->done()) {
//     auto drafts = (*decoder)->Draft();
//     auto round = (*decoder)->Verify();           // or Verify(drafts of one's own)
//   }
//
// A face of Engine: the text is the one that Engine::Generate gives. One thread at a time.
//
// Between requests it also drafts for texts of the caller's (Draft with a context) and verifies
// drafts on logits of the caller's (Verify and Step with target_logits): no pass of the target,
// the decoder's own rule, noise, statistics and draft-length controller.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/draft_options.h"
#include "foretoken/engine.h"
#include "foretoken/token_rows.h"
#include "foretoken/verification.h"

namespace foretoken {

// Views that hold until the next call of the decoder.
struct DraftedTokens {
  std::span<const std::int32_t> tokens;  // empty: the round decodes plainly
  // [tokens]: what the drafter's law gave each; empty where the drafts were certain.
  std::span<const float> probabilities;
  // [tokens, vocabulary], where asked for: DraftOptions has the meaning.
  TokenRows distributions, logits;
};

// What a round gave. Views hold until the next call.
struct DecodedRound {
  std::span<const std::int32_t> tokens;  // committed
  std::string text;                      // that may be shown now: whole characters
  int drafted = 0, accepted = 0;
  bool done = false;
  // The last of the tokens, by where it came from: in place of a rejected draft, or behind drafts
  // that were all accepted. Neither for a plain token, and where the text ended before it.
  std::optional<std::int32_t> recovered_token, bonus_token;
  std::span<const TokenLogprobs> logprobs;  // [tokens], where Request.logprobs asks for them
  // [drafted + 1, vocabulary]: the target's logits as the model gives them. Row i verified draft i;
  // the last one follows all drafts. Nothing is copied.
  TokenRows target_logits;
};

// How tokens are drawn where the caller gives the text or the logits.
struct GivenSampling {
  SamplingParameters sampling = {};
  std::uint64_t seed = 0, request_id = 0;
  // The last tokens of a context that are output: frequency and presence penalties count those.
  int n_generated = 0;
};

// A step on logits of the caller's.
struct VerifiedStep {
  std::span<const std::int32_t> drafts;  // a view that holds until the next call
  VerifiedDraft verified;
  std::optional<double> acceptance_rate;  // of this step: accepted / drafted
};

// Counters since the start or the last reset. Rates without a denominator are absent.
struct DecoderStatistics {
  std::int64_t total_steps = 0;  // rounds
  std::int64_t total_draft_tokens = 0;
  std::int64_t total_accepted_tokens = 0;
  std::optional<double> acceptance_rate;  // a: accepted / drafted
  // (1 - a^(K+1)) / ((1 - a) (c K + 1)): K the mean draft, c what a draft costs of a target pass,
  // both as measured. An estimate: a pass over K + 1 rows counts as one over a single row.
  std::optional<double> speedup_estimate;
};

class SpeculativeDecoder {
 public:
  // Errors: as Engine::Open; kInvalidArgument where max_sequences is not 1.
  [[nodiscard]] static Result<std::unique_ptr<SpeculativeDecoder>> Create(EngineOptions options);
  ~SpeculativeDecoder();

  // Reads the prompt and commits the target's first token, if the request wants any. Errors: as
  // Engine::Begin; kInvalidArgument while a request runs.
  [[nodiscard]] Result<DecodedRound> Begin(Request request, OnRound on_round = {});

  // The drafts of the next round; the same ones until they are verified, with what the first call
  // asked for. Errors: kInvalidArgument (nothing runs, num_steps out of range).
  [[nodiscard]] Result<DraftedTokens> Draft(const DraftOptions& options = {});
  // Judges them. Errors: kInvalidArgument (no drafts were made).
  [[nodiscard]] Result<DecodedRound> Verify();
  // In their place drafts of the caller's, which count as certain; makes the drafter's first where
  // that was not done. For drafts that do not depend on what the target is about to draw. Errors:
  // kInvalidArgument (unknown tokens, more than may be committed, a strategy that compares logits);
  // nothing has happened then.
  [[nodiscard]] Result<DecodedRound> Verify(std::span<const std::int32_t> drafts);
  // Draft and Verify.
  [[nodiscard]] Result<DecodedRound> Step();

  // While no request runs: drafts behind a text of the caller's, which the drafter reads anew each
  // time; as many as the draft-length controller wants. Errors: kInvalidArgument (a request runs,
  // an unknown token, a drafter that needs more than a text), kTooLarge (beyond the context).
  [[nodiscard]] Result<DraftedTokens> Draft(std::span<const std::int32_t> context,
                                            const GivenSampling& given = {},
                                            const DraftOptions& options = {});
  // While no request runs: verifies drafts of the caller's, which count as certain, on logits of
  // the caller's, [drafts + 1, vocabulary]. Position: the tokens that such calls gave since the
  // last ResetStats, so that no noise serves twice. Errors: kInvalidArgument.
  [[nodiscard]] Result<VerifiedDraft> Verify(std::span<const std::int32_t> drafts,
                                             const TokenRows& target_logits,
                                             const GivenSampling& given = {});
  // While no request runs: Draft behind `context`, at most target_logits.rows - 1 tokens, and their
  // verification with their distributions; the position is context.size(). Row i of the logits is
  // the target's for the i-th token behind the context. Errors: as both.
  [[nodiscard]] Result<VerifiedStep> Step(std::span<const std::int32_t> context,
                                          const TokenRows& target_logits,
                                          const GivenSampling& given = {});

  // A whole request. Errors: as Begin.
  [[nodiscard]] Result<Completion> Generate(Request request, const OnRound& on_round = {});
  // Ends the running request; its finish reason is "cancelled".
  void Cancel();

  bool done() const;  // nothing runs
  // Of the running or the last request, so far. Its finish reason means something once it is done.
  Completion completion() const;

  SpeculationStats stats() const;  // all counters
  DecoderStatistics statistics() const;
  // The two rates as numbers in any case: 0 before the first draft, and 1, no speed-up, before the
  // first round that drafted.
  double acceptance_rate() const { return statistics().acceptance_rate.value_or(0); }
  double speedup_estimate() const { return statistics().speedup_estimate.value_or(1); }
  // Counters begin at 0, and the draft-length controller forgets what it learnt.
  void ResetStats();
  // What draft lengths come from where SpeculativeOptions.lookahead is "ewma"; else null. It lives
  // with the decoder: each request begins with it reset, in the configuration that it has. The
  // caller may reset it, change its configuration or tell it of rounds. A request's
  // num_speculative_tokens stays the most that is drafted.
  const AdaptiveLookahead* adaptive() const;
  AdaptiveLookahead* adaptive();

  const Engine& engine() const;  // for Tokenize, Detokenize, FormatChat, summary

 private:
  class Impl;
  explicit SpeculativeDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
