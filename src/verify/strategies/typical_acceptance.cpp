// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/typical_acceptance.h"

#include <algorithm>
#include <cmath>

#include "verify/strategies/greedy.h"

namespace foretoken::verify {

round::Verdict TypicalAcceptance::Verify(const round::Proposal& proposal, LogitsView logits,
                                         sampling::Sampler& sampler, float* p) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  for (int i = 0; i < proposal.length(); ++i) {
    sampler.Distribution(logits.Row(i), p);
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    const double pd = sampler.Knows(d) ? static_cast<double>(p[d]) : 0.0;
    if (!(pd > std::min(epsilon_, delta_ * std::exp(-sampler.Entropy(p)))))
      return EndWalk(proposal, i, sampler.Race(p), sampler);
    sampler.Push(d);
  }
  return EndWalk(proposal, proposal.length(), sampler.Sample(logits.Row(proposal.length()), p),
                 sampler);
}

extern const VerifierSpec kTypicalAcceptanceSpec = {
    .info = {.name = "typical-acceptance",
             .help = "accepts drafts that are typical of the model's distribution",
             .accepts_if = "p_i(d_i) > min(ε, δ exp(−H(p_i))), H in nats; ε .09, δ .3",
             .else_takes = "from p_i",
             .random_numbers = "target"},
    .make = Make<TypicalAcceptance>};

}  // namespace foretoken::verify
