// SPDX-License-Identifier: Apache-2.0
#include "verify/synthetic.h"

#include "base/check.h"
#include "verify/strategies/greedy.h"

namespace foretoken::verify {

double SyntheticBase(double rate, int k) {
  constexpr double kTolerance = 1e-9;
  if (rate <= 0) return 0;
  if (rate >= 1) return 1;
  double low = 0, high = 1;
  while (high - low > kTolerance / 4) {
    const double base = (low + high) / 2;
    double sum = 0, power = 1;
    for (int i = 0; i < k; ++i) sum += power *= base;
    (sum / k < rate ? low : high) = base;
  }
  return (low + high) / 2;
}

Synthetic::Synthetic(double rate, bool each) : bases_{} {
  for (int m = 1; m <= kMaxDraft; ++m)
    bases_[static_cast<std::size_t>(m)] = each ? rate : SyntheticBase(rate, m);
}

round::Verdict Synthetic::Verify(const round::Proposal& proposal, LogitsView logits,
                                 sampling::Sampler& sampler, float*) const noexcept {
  FORETOKEN_DCHECK(proposal.length() <= kMaxDraft);
  const double base = bases_[static_cast<std::size_t>(proposal.length())];
  int accepted = 0;
  while (accepted < proposal.length() &&
         sampler.noise().Uniform(Stream::kSynthetic, sampler.position()) < base)
    sampler.Push(proposal.tokens[static_cast<std::size_t>(accepted++)]);
  return EndWalk(proposal, accepted, sampler.Argmax(logits.Row(accepted)), sampler);
}

}  // namespace foretoken::verify
