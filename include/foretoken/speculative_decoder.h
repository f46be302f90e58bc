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
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/engine.h"

namespace foretoken {

// Views that hold until the next call of the decoder.
struct DraftedTokens {
  std::span<const std::int32_t> tokens;  // empty: the round decodes plainly
  // [tokens]: what the drafter's law gave each; empty where the drafts were certain.
  std::span<const float> probabilities;
};

// What a round gave.
struct DecodedRound {
  std::span<const std::int32_t> tokens;  // committed; a view that holds until the next call
  std::string text;                      // that may be shown now: whole characters
  int drafted = 0, accepted = 0;
  bool done = false;
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

  // The drafts of the next round; the same ones until they are verified. Errors: kInvalidArgument
  // (nothing runs).
  [[nodiscard]] Result<DraftedTokens> Draft();
  // Judges them. Errors: kInvalidArgument (no drafts were made).
  [[nodiscard]] Result<DecodedRound> Verify();
  // In their place drafts of the caller's, which count as certain; makes the drafter's first where
  // that was not done. For drafts that do not depend on what the target is about to draw. Errors:
  // kInvalidArgument (unknown tokens, more than may be committed, a strategy that compares logits);
  // nothing has happened then.
  [[nodiscard]] Result<DecodedRound> Verify(std::span<const std::int32_t> drafts);
  // Draft and Verify.
  [[nodiscard]] Result<DecodedRound> Step();

  // A whole request. Errors: as Begin.
  [[nodiscard]] Result<Completion> Generate(Request request, const OnRound& on_round = {});
  // Ends the running request; its finish reason is "cancelled".
  void Cancel();

  bool done() const;  // nothing runs
  // Of the running or the last request, so far. Its finish reason means something once it is done.
  Completion completion() const;

  SpeculationStats stats() const;  // all counters
  DecoderStatistics statistics() const;
  void ResetStats();
  // What draft lengths come from where SpeculativeOptions.lookahead is "ewma"; else null. It lives
  // with the decoder, and each request begins with a fresh one at the same address.
  const AdaptiveLookahead* adaptive() const;

  const Engine& engine() const;  // for Tokenize, Detokenize, FormatChat, summary

 private:
  class Impl;
  explicit SpeculativeDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
