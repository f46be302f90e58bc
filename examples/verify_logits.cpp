// SPDX-License-Identifier: Apache-2.0
// verify_logits: every verification rule on made-up logits, without a model.
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

#include "foretoken/verification.h"

int main() {
  // The probabilities of three tokens for a drafter and a target; the draft is token 0.
  const std::vector<float> q = {0.40f, 0.35f, 0.25f};
  std::vector<float> logits;
  for (int row = 0; row < 2; ++row)  // one to verify the draft, one behind it
    for (const double p : {0.45, 0.50, 0.05}) logits.push_back(static_cast<float>(std::log(p)));
  const std::int32_t draft = 0;

  for (const auto strategy :
       {foretoken::VerifyStrategy::kResidual, foretoken::VerifyStrategy::kBlock,
        foretoken::VerifyStrategy::kSampleMatch, foretoken::VerifyStrategy::kTargetProbability,
        foretoken::VerifyStrategy::kTypicalAcceptance, foretoken::VerifyStrategy::kRelaxed}) {
    foretoken::VerificationOptions options;
    options.vocabulary_size = 3;
    options.speculative.strategy = strategy;
    options.seed = 1;
    auto verification = foretoken::DraftVerification::Create(options);
    if (!verification) return std::cerr << verification.error().message << '\n', 1;
    int accepted = 0;
    constexpr int kPositions = 10000;  // each has noise of its own
    for (int position = 0; position < kPositions; ++position) {
      const auto verified = verification->Verify({.position = position,
                                                  .drafts = {&draft, 1},
                                                  .draft_probabilities = {q, 3},
                                                  .target_logits = {logits, 3}});
      if (!verified) return std::cerr << verified.error().message << '\n', 1;
      accepted += verified->accepted;
    }
    std::cout << foretoken::Name(strategy) << ": accepts token 0 with "
              << 1.0 * accepted / kPositions << '\n';
    // min(1, p / q) = 1 for residual; p = 0.45 for the two that look at the target alone.
    const double wanted = strategy == foretoken::VerifyStrategy::kSampleMatch ||
                                  strategy == foretoken::VerifyStrategy::kTargetProbability
                              ? 0.45
                              : 1;
    if (std::abs(1.0 * accepted / kPositions - wanted) > 0.02)
      return std::cerr << "verify_logits: that is not its rule\n", 1;
  }

  // At temperature 0 the target's best token counts, whatever the ratio of the probabilities is.
  foretoken::VerificationOptions greedy;
  greedy.vocabulary_size = 3;
  greedy.sampling.temperature = 0;
  const auto verified = foretoken::Verify(
      greedy, {.drafts = {&draft, 1}, .draft_probabilities = {q, 3}, .target_logits = {logits, 3}});
  if (!verified || verified->accepted != 0 || verified->next != 1)
    return std::cerr << "verify_logits: greedy is not greedy\n", 1;
}
