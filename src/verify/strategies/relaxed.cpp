// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/relaxed.h"

#include "verify/strategies/greedy.h"

namespace foretoken::verify {

bool Relaxed::Accepts(const sampling::Sampler& sampler, const float* p, Token best,
                      Token d) const noexcept {
  if (!sampler.Knows(d) || !(p[d] > 0)) return false;  // what the request excludes stays excluded
  return static_cast<double>(p[d]) >= static_cast<double>(p[best]) - delta_ &&
         sampler.BetterThan(p, d) < top_n_;
}

round::Verdict Relaxed::Verify(const round::Proposal& proposal, LogitsView logits,
                               sampling::Sampler& sampler, float* p) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  for (int i = 0; i < proposal.length(); ++i) {
    sampler.Distribution(logits.Row(i), p);
    const Token best = sampler.Argmax(logits.Row(i));
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    if (!Accepts(sampler, p, best, d)) return EndWalk(proposal, i, best, sampler);
    sampler.Push(d);
  }
  return EndWalk(proposal, proposal.length(), sampler.Sample(logits.Row(proposal.length()), p),
                 sampler);
}

extern const VerifierSpec kRelaxedSpec = {
    .info = {.name = "relaxed",
             .help = "accepts drafts that are almost as probable as the best token",
             .accepts_if = "d_i among the 10 best of p_i, and p_i(d_i) ≥ max p_i − .6",
             .else_takes = "argmax p_i",
             .random_numbers = "none"},
    .make = Make<Relaxed>};

}  // namespace foretoken::verify
