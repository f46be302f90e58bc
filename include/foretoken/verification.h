// SPDX-License-Identifier: Apache-2.0
// foretoken/verification.h: verification of drafts on your own logits, with every strategy of
// the engine and without a model.
//
//   auto verified = foretoken::Verify(
//       {.vocabulary_size = 3, .speculative = {.strategy = foretoken::VerifyStrategy::kResidual},
//        .seed = 7},
//       {.drafts = drafts,                                   // [n]
//        .draft_probabilities = {probabilities, 3},          // [n, 3]
//        .target_logits = {logits, 3}});                     // [n + 1, 3]
//   verified->accepted; verified->next; verified->origin;
//
// The strategies are the engine's own code: with the logits and the drafts of an engine's round, its
// text, seed and request id, they accept and draw exactly what the engine does. docs/speculation.md
// has their rules, verifier.h their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretoken/drafts.h"
#include "foretoken/options.h"
#include "foretoken/request.h"
#include "foretoken/result.h"

namespace foretoken {

struct VerificationOptions {
  int vocabulary_size = 0;  // >= 1; rows may be longer, the rest of them is ignored
  // The strategy and its settings, or a synthetic acceptance rate; other fields are ignored. At
  // temperature 0 every strategy is greedy. Above it, kAuto is residual for drafts with
  // probabilities or logits, and sample-match for certain drafts.
  SpeculativeOptions speculative = {};
  // How the target's tokens are drawn. A grammar is not allowed: it would need the vocabulary's
  // texts.
  SamplingParameters sampling = {};
  // How drafts were drawn from the drafter's logits; default: `sampling`.
  std::optional<SamplingParameters> draft_sampling = {};
  // Your own verifier instead of a strategy; `speculative.strategy` is then kAuto.
  std::shared_ptr<Verifier> verifier = {};
  // The noise is keyed by these and the position in the text.
  std::uint64_t seed = 0, request_id = 0;
  // A cap for the kernels, as EngineOptions.isa. Every instruction set gives the same result.
  std::string isa = {};
};

// Uniform numbers in [0, 1) instead of the noise that seed, request id and position give. Empty
// spans are computed from the noise.
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

// One sequence's drafts. Everything is read only during the call.
struct VerificationInput {
  // The text before the drafts, or the end of it: penalties and processors look at it. Its last
  // n_generated tokens are output, the others prompt.
  std::span<const std::int32_t> text = {};
  int n_generated = 0;
  // The position of the first draft in the text; default: text.size().
  std::optional<int> position = {};

  std::span<const std::int32_t> drafts = {};  // [n], at most 64; empty: a plain decoding step
  // [n, vocabulary]: the distribution that each draft was drawn from. REQUIRES: no negative
  // numbers; rows sum to 1. Without it and without logits each draft is certain.
  TokenRows draft_probabilities = {};
  // [n, vocabulary]: the drafter's logits. logit-comparison needs them. If there are no
  // probabilities, these and draft_sampling give the distributions.
  TokenRows draft_logits = {};
  // [n + 1, vocabulary]; row i verifies draft i, the last is behind all.
  TokenRows target_logits = {};
  VerificationUniforms uniforms = {};
  // -1: none; n: the log-probabilities of the kept tokens, and of the n best tokens at each
  // position, n <= 64.
  int logprobs = -1;
};

struct VerifiedDrafts {
  int accepted = 0;        // drafts that are kept, from the first on
  std::int32_t next = -1;  // one more token
  // kRecovered: in place of the first rejected draft; kBonus: behind drafts that were all accepted;
  // kPlain: there was no draft.
  TokenOrigin origin = TokenOrigin::kPlain;
  std::string_view strategy;  // that was followed; the name() of your own verifier
  bool lossless = true;       // kept tokens have the distribution of plain decoding
  // [accepted + 1], if asked for: natural logarithm, temperature 1, no filters.
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

  // Errors: kInvalidArgument: impossible tokens, rows or numbers, or missing input that the
  // strategy needs.
  [[nodiscard]] Result<VerifiedDrafts> Verify(const VerificationInput& input);

 private:
  class Impl;
  explicit DraftVerification(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Create and Verify in one call.
[[nodiscard]] Result<VerifiedDrafts> Verify(VerificationOptions options,
                                            const VerificationInput& input);

}  // namespace foretoken
