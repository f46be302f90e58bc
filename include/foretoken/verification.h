// SPDX-License-Identifier: Apache-2.0
// foretoken/verification.h: verification of drafts on logits of a program's own, by every rule of
// the engine and without a model.
//
//   auto verified = foretoken::Verify(
//       {.vocabulary_size = 3, .speculative = {.strategy = foretoken::VerifyStrategy::kResidual},
//        .seed = 7},
//       {.drafts = drafts,                                   // [n]
//        .draft_probabilities = {probabilities, 3},          // [n, 3]
//        .target_logits = {logits, 3}});                     // [n + 1, 3]
//   verified->accepted; verified->next; verified->kind;
//
// The rules are the engine's own code: fed with the logits and the drafts of an engine's round,
// the text, the seed and the request's id, they accept and draw exactly what the engine does.
// docs/speculation.md has the rules, verify_strategy.h their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/request.h"
#include "foretoken/result.h"
#include "foretoken/stream.h"
#include "foretoken/token_rows.h"

namespace foretoken {

struct VerificationOptions {
  int vocabulary_size = 0;  // >= 1; rows may be longer, the rest of them is never looked at
  // The strategy and its settings, or a synthetic acceptance rate; the rest is not read. At
  // temperature 0 every strategy is greedy. kAuto above it: residual where drafts come with
  // probabilities or logits, and sample-match where they were certain.
  SpeculativeOptions speculative = {};
  // How the target's tokens are drawn. Not a grammar: it would need the vocabulary's texts.
  SamplingParameters sampling = {};
  // How drafts were drawn from the drafter's logits; `sampling` where it is not given.
  std::optional<SamplingParameters> draft_sampling = {};
  // A rule of the program's own in place of the strategy; `speculative.strategy` is then kAuto.
  std::shared_ptr<Verifier> verifier = {};
  // They key the noise, together with the position in the text.
  std::uint64_t seed = 0, request_id = 0;
  // A cap for the kernels, as EngineOptions.isa. Each instruction set gives the same.
  std::string isa = {};
};

// Uniform numbers in [0, 1) in place of the noise that seed, request id and position give. What is
// empty is computed.
struct VerificationUniforms {
  // [drafts]: whether a draft is accepted (residual, block, target-probability, synthetic).
  std::span<const double> accept = {};
  // [drafts]: the token in place of a rejected draft (residual, block, target-probability).
  std::span<const double> recover = {};
  // [drafts + 1]: the target's own token at each position: bonus and plain tokens, all tokens of
  // sample-match, and those that typical-acceptance recovers. It is the first token at which the
  // running sum of the probabilities exceeds the number.
  std::span<const double> target = {};
};

// One sequence's drafts. Everything is read during the call alone.
struct VerificationInput {
  // The text before the drafts, or the end of it: what penalties and processors look at. Its last
  // n_generated tokens are output, the others prompt.
  std::span<const std::int32_t> text = {};
  int n_generated = 0;
  // Of the first draft, counted from the beginning of the text; not given: text.size().
  std::optional<int> position = {};

  std::span<const std::int32_t> drafts = {};  // [n], at most 64; empty: a plain decoding step
  // [n, vocabulary]: the distribution that each draft was drawn from. REQUIRES: no negative
  // numbers; rows sum to 1. Without it and without logits each draft was certain.
  TokenRows draft_probabilities = {};
  // [n, vocabulary]: the drafter's logits. logit-comparison needs them; where there are no
  // probabilities, they and draft_sampling give the distributions.
  TokenRows draft_logits = {};
  TokenRows target_logits =
      {};  // [n + 1, vocabulary]; row i verifies draft i, the last is behind all
  VerificationUniforms uniforms = {};
  // -1: none; n: the log-probabilities of the tokens that are kept, and those of the n best tokens
  // there, n <= 64.
  int logprobs = -1;
};

struct VerifiedDraft {
  int accepted = 0;        // drafts that are kept, from the first on
  std::int32_t next = -1;  // one more token
  // kRecovered: in place of the first rejected draft; kBonus: behind drafts that were all accepted;
  // kPlain: there was no draft.
  TokenOrigin kind = TokenOrigin::kPlain;
  std::string_view strategy;  // the rule that was followed; of an own verifier its name()
  bool lossless = true;       // kept tokens have the distribution of plain decoding
  // [accepted + 1], where asked for: natural logarithm, temperature 1, no filters.
  std::vector<TokenLogprobs> logprobs = {};
};

// Keeps its memory from call to call. One thread at a time.
class DraftVerification {
 public:
  // Errors: kInvalidArgument, naming the option.
  [[nodiscard]] static Result<DraftVerification> Create(VerificationOptions options);
  DraftVerification(DraftVerification&&) noexcept;
  DraftVerification& operator=(DraftVerification&&) noexcept;
  ~DraftVerification();

  // Errors: kInvalidArgument: tokens, rows or numbers that cannot be, and what the strategy lacks.
  [[nodiscard]] Result<VerifiedDraft> Verify(const VerificationInput& input);

 private:
  class Impl;
  explicit DraftVerification(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Create and Verify at once.
[[nodiscard]] Result<VerifiedDraft> Verify(VerificationOptions options,
                                           const VerificationInput& input);

}  // namespace foretoken
