// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/residual.h"

#include <array>

#include "verify/strategies/greedy.h"

namespace foretoken::verify {
round::Verdict Residual::Verify(const round::Proposal& proposal, LogitsView logits,
                                sampling::Sampler& sampler, float* scratch) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  float *p = scratch, *residual = scratch + sampler.vocabulary();
  for (int i = 0; i < proposal.length(); ++i) {
    sampler.Distribution(logits.Row(i), p);
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    const float* q = proposal.Distribution(i);
    const double pd = sampler.Knows(d) ? static_cast<double>(p[d]) : 0.0;
    const double qd = q != nullptr && sampler.Knows(d) ? static_cast<double>(q[d]) : 1.0;
    const double u = sampler.noise().Uniform(Stream::kCoin, sampler.position());
    if (!(u + threshold_ < 1 && (u + threshold_) * qd < pd)) {
      const double v = sampler.noise().Uniform(Stream::kResidual, sampler.position());
      const Token next = adjusts_ ? sampler.DrawResidual(p, q, d, v, residual) : sampler.Draw(p, v);
      return EndWalk(proposal, i, next, sampler);
    }
    sampler.Push(d);
  }
  return EndWalk(proposal, proposal.length(), sampler.Sample(logits.Row(proposal.length()), p),
                 sampler);
}

namespace {

constexpr std::array<std::string_view, 2> kAliases = {"standard", "rejection-sampling"};

}  // namespace

extern const VerifierSpec kResidualSpec = {
    .info = {.name = "residual",
             .aliases = kAliases,
             .help = "rejection sampling by the distributions of model and drafter",
             .accepts_if = "u q_i(d_i) < p_i(d_i)",
             .else_takes = "from r(x) = max(0, p_i(x) − q_i(x)), normalised",
             .random_numbers = "coin; residual",
             .lossless = true,
             .needs_q = true},
    .make = Make<Residual>};

}  // namespace foretoken::verify
