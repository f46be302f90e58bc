// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/greedy.h"

namespace foretoken::verify {

round::Verdict EndWalk(const round::Proposal& proposal, int accepted, Token next,
                       sampling::Sampler& sampler) noexcept {
  sampler.Pop(accepted);
  const auto kind = proposal.length() == 0          ? round::NextKind::kPlain
                    : accepted == proposal.length() ? round::NextKind::kBonus
                                                    : round::NextKind::kRecovered;
  return {.accepted = accepted, .next = next, .kind = kind};
}

round::Verdict VerifyGreedy(const round::Proposal& proposal, LogitsView logits,
                            sampling::Sampler& sampler) noexcept {
  for (int i = 0;; ++i) {
    const Token best = sampler.Argmax(logits.Row(i));
    if (i == proposal.length() || best != proposal.tokens[static_cast<std::size_t>(i)])
      return EndWalk(proposal, i, best, sampler);
    sampler.Push(best);
  }
}

round::Verdict Greedy::Verify(const round::Proposal& proposal, LogitsView logits,
                              sampling::Sampler& sampler, float*) const noexcept {
  return VerifyGreedy(proposal, logits, sampler);
}

extern const VerifierSpec kGreedySpec = {
    .info = {.name = "greedy",
             .help = "accepts the most probable token; for temperature 0",
             .accepts_if = "d_i = argmax p_i",
             .else_takes = "argmax p_i",
             .random_numbers = "none",
             .lossless = true},
    .make = Make<Greedy>};

}  // namespace foretoken::verify
