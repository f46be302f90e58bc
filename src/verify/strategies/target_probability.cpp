// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/target_probability.h"

#include "verify/strategies/greedy.h"

namespace foretoken::verify {

round::Verdict TargetProbability::Verify(const round::Proposal& proposal, LogitsView logits,
                                         sampling::Sampler& sampler,
                                         float* scratch) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  float *p = scratch, *rest = scratch + sampler.vocabulary();
  for (int i = 0; i < proposal.length(); ++i) {
    sampler.Distribution(logits.Row(i), p);
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    const double pd = sampler.Knows(d) ? static_cast<double>(p[d]) : 0.0;
    if (!(sampler.noise().Uniform(Stream::kCoin, sampler.position()) < pd)) {
      const double v = sampler.noise().Uniform(Stream::kResidual, sampler.position());
      return EndWalk(proposal, i, sampler.DrawResidual(p, nullptr, d, v, rest), sampler);
    }
    sampler.Push(d);
  }
  return EndWalk(proposal, proposal.length(), sampler.Sample(logits.Row(proposal.length()), p),
                 sampler);
}

extern const VerifierSpec kTargetProbabilitySpec = {
    .info = {.name = "target-probability",
             .help = "accepts a draft with the probability that the model gives it",
             .accepts_if = "u < p_i(d_i)",
             .else_takes = "from p_i without d_i, normalised",
             .random_numbers = "coin; residual",
             .lossless = true},
    .make = Make<TargetProbability>};

}  // namespace foretoken::verify
