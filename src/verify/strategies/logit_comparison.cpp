// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/logit_comparison.h"

#include <limits>

#include "verify/strategies/greedy.h"

namespace foretoken::verify {
namespace {

constexpr double kTolerance = 1e-5;

bool Accepts(float draft_logit, float target_logit) {
  return target_logit > -std::numeric_limits<float>::infinity() &&
         static_cast<double>(draft_logit) <= static_cast<double>(target_logit) + kTolerance;
}

}  // namespace

round::Verdict LogitComparison::Verify(const round::Proposal& proposal, LogitsView logits,
                                       sampling::Sampler& sampler, float* scratch) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  for (int i = 0; i < proposal.length(); ++i) {
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    const bool comparable = proposal.raw_logits != nullptr && sampler.Knows(d);
    if (!comparable || !Accepts(proposal.raw_logits[i], logits.Row(i).logits[d]))
      return EndWalk(proposal, i, sampler.Argmax(logits.Row(i)), sampler);
    sampler.Push(d);
  }
  return EndWalk(proposal, proposal.length(),
                 sampler.Sample(logits.Row(proposal.length()), scratch), sampler);
}

extern const VerifierSpec kLogitComparisonSpec = {
    .info = {.name = "logit-comparison",
             .help =
                 "accepts drafts whose logit is at least as high for the model as for the drafter",
             .accepts_if = "drafter's logit of d_i ≤ target's + 1e-5, both raw",
             .else_takes = "argmax p_i",
             .random_numbers = "none",
             .needs_logits = true},
    .make = Make<LogitComparison>};

}  // namespace foretoken::verify
